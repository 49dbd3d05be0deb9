"""What compilers, run-time libraries, file formats and licences leave in every file, and no analyst looks for."""

import re

_OF_TOOLS = re.compile(
    r"""
    !This\ program\ (?:cannot|must)\ be\ run | ^GCC:\ \(| ^clang\ version | ^rustc\ version | ^Linker:\ LLD
    | ^\.(?:text|rdata|rodata|data|bss|pdata|rsrc|reloc|idata|symtab|strtab|shstrtab|dynsym|dynstr|init|fini|plt|got|eh_frame
      |comment|note|interp|gnu|debug)[\w.]*$
    | ^_Z[NTLK\d] | ^\?[\w@?$]+@@ | ^__(?:cxa|gxx|libc|gmon|do_global|frame_dummy|stack_chk|imp_|security|acrt|scrt|vcrt)
    | ^_(?:ITM_|IO_|Unwind_|init|fini|start|edata|end)\w*$ | ^\.?(?:crtstuff|crt1|crti|crtn)\.[co]
    | ^/rustc/[0-9a-f]{40}/ | ^library/(?:std|core|alloc)/src/ | ^/usr/(?:local/)?go/src/ | ^runtime\.[\w.()*]+$ | ^go\.(?:buildid|info)
    | Microsoft\ Visual\ C\+\+\ Runtime | ^R60\d\d | ^api-ms-win-
    | ^(?:abcdefghijklmnopqrstuvwxyz|ABCDEFGHIJKLMNOPQRSTUVWXYZ|0123456789)
    | ^<assembly\ xmlns | ^<requestedExecutionLevel | urn:schemas-microsoft-com:
    | ^(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day$
    | ^(?:January|February|March|April|June|July|August|September|October|November|December)$
    """,
    re.VERBOSE,
)
_OF_LICENCES = re.compile(
    r"""(?i)
    \bcopyright\s+(?:\(c\)|©|\d{4}) | \ball\ rights\ reserved\b | \blicensed\ under\b | \bGNU\ (?:lesser\ |affero\ )?general\ public
    | \bapache\ license\b | \bmit\ license\b | \bpermission\ is\ hereby\ granted\b | \bwithout\ warranty\ of\ any\ kind\b
    | \bredistribution\ and\ use\ in\b | \bwithout\ warranties\ or\ conditions\b
    """,
    re.VERBOSE,
)

_HOSTS = (
    "w3.org", "schemas.microsoft.com", "schemas.openxmlformats.org", "schemas.xmlsoap.org", "purl.org", "ns.adobe.com", "xml.org",
    "gnu.org", "fsf.org", "apache.org", "opensource.org", "mozilla.org", "openssl.org", "zlib.net", "sourceware.org", "llvm.org",
    "gcc.gnu.org", "python.org", "golang.org", "go.dev", "rust-lang.org", "docs.rs", "crates.io", "boost.org", "unicode.org",
    "iana.org", "ietf.org", "kernel.org", "debian.org", "ubuntu.com", "launchpad.net", "freedesktop.org", "x.org", "qt.io",
    "symantec.com", "verisign.com", "digicert.com", "thawte.com", "globalsign.com", "globalsign.net", "sectigo.com", "comodoca.com",
    "usertrust.com", "godaddy.com", "entrust.net", "letsencrypt.org", "symcb.com", "symcd.com", "ws.symantec.com", "pki.goog",
    "microsoft.com", "windowsupdate.com", "aka.ms", "adobe.com", "apple.com",
)  # fmt: skip
"""Hosts of namespaces, licences, tools and certificates; those below them count too."""

_LETTER = re.compile(r"[A-Za-z]")
FEWEST_DISTINCT = 4


def is_noise(text: str) -> bool:
    """Whether a string is one that every file of its kind has, or says nothing."""
    if _OF_TOOLS.search(text) is not None or _OF_LICENCES.search(text) is not None:
        return True
    if len(set(text)) < FEWEST_DISTINCT or 2 * len(_LETTER.findall(text)) < len(text.strip()):
        return not any(sign in text for sign in ("://", ".", "\\", "/", "@"))
    return False


def is_noise_host(host: str) -> bool:
    """Whether a host is named by nearly every file of some kind."""
    name = host.lower().rstrip(".")
    return any(name == known or name.endswith(f".{known}") for known in _HOSTS)
