"""Kinds of content, short and stable, and the tables that lead to them from Magika's labels and libmagic's MIME types."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Kind:
    """A kind. `platform` is where such content runs, if only there; a `vague` one gives way to a better opinion."""

    name: str
    platform: str | None = None
    vague: bool = False


UNKNOWN = Kind("unknown", vague=True)
TEXT = Kind("text", vague=True)

FAMILIES = (
    {"text", "script", "source", "html", "xml", "json", "email", "markup"},
    {"zip", "ooxml", "odf", "jar", "apk", "epub"},
    {"ole", "msi"},
    {"pe", "dos"},
)
"""Kinds within a family are not a disagreement: one is a closer look at the other."""

_WINDOWS_SCRIPTS = ("powershell", "batch", "vba", "vbe", "hta", "scriptwsf", "autoit", "autohotkey")
_UNIX_SCRIPTS = ("shell", "awk")
_SCRIPTS = (
    "javascript",
    "python",
    "perl",
    "php",
    "ruby",
    "lua",
    "tcl",
    "asp",
    "applescript",
    "jsx",
    "tsx",
    "typescript",
    "r",
    "groovy",
    "m4",
)

MAGIKA_KINDS = {
    **dict.fromkeys(_WINDOWS_SCRIPTS, Kind("script", "windows")),
    **dict.fromkeys(_UNIX_SCRIPTS, Kind("script", "linux")),
    **dict.fromkeys(_SCRIPTS, Kind("script")),
    **dict.fromkeys(
        (
            *("ada", "asm", "c", "clojure", "cmake", "cobol", "coffeescript", "cpp", "cs", "css", "dart", "elixir", "erlang"),
            *(
                "fortran",
                "go",
                "h",
                "haskell",
                "hpp",
                "java",
                "julia",
                "kotlin",
                "lisp",
                "makefile",
                "matlab",
                "objectivec",
                "ocaml",
            ),
            *(
                "pascal",
                "prolog",
                "proto",
                "rust",
                "scala",
                "scss",
                "smali",
                "solidity",
                "sql",
                "swift",
                "verilog",
                "vhdl",
                "vue",
                "zig",
            ),
            *("dockerfile", "gradle", "bazel", "csproj", "vcxproj", "diff"),
        ),
        Kind("source"),
    ),
    **dict.fromkeys(("pebin", "exe", "dll", "sys", "cpl", "ocx", "scr"), Kind("pe", "windows")),
    **dict.fromkeys(("elf", "ko", "so"), Kind("elf", "linux")),
    **dict.fromkeys(("macho", "dylib"), Kind("macho", "macos")),
    **dict.fromkeys(("doc", "xls", "ppt", "ole", "pub", "visio", "outlook", "thumbsdb", "hwp"), Kind("ole")),
    **dict.fromkeys(("docx", "docm", "dotx", "xlsx", "xlsb", "pptx", "ooxml"), Kind("ooxml")),
    **dict.fromkeys(("odt", "ods", "odp"), Kind("odf")),
    **dict.fromkeys(("svg", "xml", "xsd", "rdf", "gpx", "tmdx"), Kind("xml")),
    **dict.fromkeys(("json", "jsonl", "jsonc", "ipynb"), Kind("json")),
    **dict.fromkeys(("html", "mht"), Kind("html")),
    **dict.fromkeys(("markdown", "rst", "latex", "sgml", "troff", "yaml", "toml", "ini", "csv", "tsv"), Kind("markup")),
    **dict.fromkeys(("txt", "txtascii", "txtutf8", "txtutf16", "randomtxt", "randomascii", "srt", "vtt", "asc", "license"), TEXT),
    **dict.fromkeys(("unknown", "randombytes", "undefined"), UNKNOWN),
    **dict.fromkeys(
        ("bmp", "gif", "heif", "icns", "ico", "jp2", "jpeg", "png", "psd", "tga", "tiff", "webp", "wmf", "emf", "xcf"),
        Kind("image"),
    ),
    **dict.fromkeys(("au", "flac", "midi", "mp3", "ogg", "wav", "wma"), Kind("audio")),
    **dict.fromkeys(("3gp", "avi", "flv", "mkv", "mp4", "mpegts", "qt", "webm", "wmv", "asf"), Kind("video")),
    **dict.fromkeys(("otf", "ttf", "woff", "woff2"), Kind("font")),
    **dict.fromkeys(("gzip", "xz", "cab", "tar", "rar", "iso", "rpm", "dmg", "arj", "ace", "lha", "lz4", "deb", "ar"), None),
    "bzip": Kind("bzip2"),
    "sevenzip": Kind("7z"),
    "zst": Kind("zstd"),
    "zip": Kind("zip"),
    "jar": Kind("jar"),
    "apk": Kind("apk", "android"),
    "dex": Kind("dex", "android"),
    "msi": Kind("msi", "windows"),
    "lnk": Kind("lnk", "windows"),
    "internetshortcut": Kind("url", "windows"),
    "winregistry": Kind("registry", "windows"),
    "chm": Kind("chm", "windows"),
    "one": Kind("onenote", "windows"),
    "javabytecode": Kind("class"),
    "pythonbytecode": Kind("python-bytecode"),
    "wasm": Kind("wasm"),
    "swf": Kind("flash"),
    "epub": Kind("epub"),
    "pdf": Kind("pdf"),
    "postscript": Kind("postscript"),
    "rtf": Kind("rtf"),
    "eml": Kind("email"),
    "pcap": Kind("pcap"),
    "pem": Kind("certificate"),
    "sqlite": Kind("sqlite"),
    "pickle": Kind("pickle"),
    "torrent": Kind("torrent"),
    "empty": Kind("empty"),
}
"""By label; None: the label is the kind."""

LIBMAGIC_KINDS = {
    "application/vnd.microsoft.portable-executable": Kind("pe", "windows"),
    "application/x-dosexec": Kind("dos", "windows"),
    "application/x-executable": Kind("elf", "linux"),
    "application/x-pie-executable": Kind("elf", "linux"),
    "application/x-sharedlib": Kind("elf", "linux"),
    "application/x-object": Kind("elf", "linux"),
    "application/x-coredump": Kind("elf", "linux"),
    "application/x-mach-binary": Kind("macho", "macos"),
    "application/x-java-applet": Kind("class"),
    "application/java-archive": Kind("jar"),
    "application/vnd.android.package-archive": Kind("apk", "android"),
    "application/vnd.android.dex": Kind("dex", "android"),
    "application/x-bytecode.python": Kind("python-bytecode"),
    "application/wasm": Kind("wasm"),
    "application/pdf": Kind("pdf"),
    "application/postscript": Kind("postscript"),
    "text/rtf": Kind("rtf"),
    "application/msword": Kind("ole"),
    "application/vnd.ms-excel": Kind("ole"),
    "application/vnd.ms-powerpoint": Kind("ole"),
    "application/vnd.ms-office": Kind("ole"),
    "application/vnd.ms-outlook": Kind("ole"),
    "application/cdfv2": Kind("ole"),
    "application/x-ole-storage": Kind("ole"),
    "application/encrypted": Kind("ole"),
    "application/vnd.ms-msi": Kind("msi", "windows"),
    "application/x-msi": Kind("msi", "windows"),
    "application/vnd.ms-htmlhelp": Kind("chm", "windows"),
    "application/x-ms-shortcut": Kind("lnk", "windows"),
    "application/x-mswinurl": Kind("url", "windows"),
    "application/onenote": Kind("onenote", "windows"),
    "application/zip": Kind("zip"),
    "application/x-7z-compressed": Kind("7z"),
    "application/x-rar": Kind("rar"),
    "application/vnd.rar": Kind("rar"),
    "application/x-tar": Kind("tar"),
    "application/gzip": Kind("gzip"),
    "application/x-gzip": Kind("gzip"),
    "application/x-bzip2": Kind("bzip2"),
    "application/x-xz": Kind("xz"),
    "application/zstd": Kind("zstd"),
    "application/x-zstd": Kind("zstd"),
    "application/x-lz4": Kind("lz4"),
    "application/vnd.ms-cab-compressed": Kind("cab", "windows"),
    "application/x-iso9660-image": Kind("iso"),
    "application/x-rpm": Kind("rpm", "linux"),
    "application/vnd.debian.binary-package": Kind("deb", "linux"),
    "application/x-archive": Kind("ar"),
    "application/x-arj": Kind("arj"),
    "application/x-lzh-compressed": Kind("lha"),
    "application/epub+zip": Kind("epub"),
    "application/x-shockwave-flash": Kind("flash"),
    "application/vnd.tcpdump.pcap": Kind("pcap"),
    "application/vnd.sqlite3": Kind("sqlite"),
    "application/x-bittorrent": Kind("torrent"),
    "application/json": Kind("json"),
    "application/x-ndjson": Kind("json"),
    "application/javascript": Kind("script"),
    "message/rfc822": Kind("email"),
    "text/html": Kind("html"),
    "text/xml": Kind("xml"),
    "application/xml": Kind("xml"),
    "image/svg+xml": Kind("xml"),
    "text/x-shellscript": Kind("script", "linux"),
    "text/x-msdos-batch": Kind("script", "windows"),
    "text/javascript": Kind("script"),
    "text/x-python": Kind("script"),
    "text/x-script.python": Kind("script"),
    "text/x-perl": Kind("script"),
    "text/x-php": Kind("script"),
    "text/x-ruby": Kind("script"),
    "text/x-lua": Kind("script"),
    "text/x-tcl": Kind("script"),
    "text/x-awk": Kind("script", "linux"),
    "text/x-c": Kind("source", vague=True),
    "text/x-c++": Kind("source", vague=True),
    "text/x-java": Kind("source", vague=True),
    "text/x-makefile": Kind("source"),
    "text/x-diff": Kind("source"),
    "text/troff": Kind("markup"),
    "text/x-tex": Kind("markup"),
    "text/plain": TEXT,
    "application/octet-stream": UNKNOWN,
    "inode/x-empty": Kind("empty"),
}

LIBMAGIC_PREFIXES = {
    "application/vnd.openxmlformats-officedocument.": Kind("ooxml"),
    "application/vnd.oasis.opendocument.": Kind("odf"),
    "image/": Kind("image"),
    "audio/": Kind("audio"),
    "video/": Kind("video"),
    "font/": Kind("font"),
    "application/font": Kind("font"),
    "text/": TEXT,
}

LIBMAGIC_DESCRIPTIONS = {
    "EICAR virus test": Kind("dos", "windows"),
    "MSI Installer": Kind("msi", "windows"),
    "Composite Document File": Kind("ole"),
    "Microsoft OOXML": Kind("ooxml"),
    "MS Windows shortcut": Kind("lnk", "windows"),
    "Windows Registry": Kind("registry", "windows"),
    "PEM certificate": Kind("certificate"),
    "Zstandard compressed": Kind("zstd"),
}
"""Beginnings or parts of descriptions, for what has no MIME type of its own."""


def kind_of_magika(label: str) -> Kind:
    """The kind of a label; one that is not in the table is unknown to us."""
    return (MAGIKA_KINDS[label] or Kind(label)) if label in MAGIKA_KINDS else UNKNOWN


def kind_of_libmagic(mime: str, description: str) -> Kind:
    """The kind of a MIME type, by its description where the type is shared."""
    for part, kind in LIBMAGIC_DESCRIPTIONS.items():
        if part in description:
            return kind
    if mime in LIBMAGIC_KINDS:
        return LIBMAGIC_KINDS[mime]
    return next((kind for prefix, kind in LIBMAGIC_PREFIXES.items() if mime.startswith(prefix)), UNKNOWN)


def akin(one: Kind, other: Kind) -> bool:
    """Whether two opinions don't contradict each other."""
    return one.name == other.name or any(one.name in family and other.name in family for family in FAMILIES)
