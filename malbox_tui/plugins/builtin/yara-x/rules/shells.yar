// Remote shells and web shells.

rule Unix_Reverse_Shell
{
    meta:
        description = "A one-line reverse shell"
        classification = "malicious"
        score = 85
        confidence = "medium"
        technique = "T1059.004 Unix Shell"
    strings:
        $bash = /\b(ba|z|k)?sh\s+-i\s*(>&|&>|<|>)\s*\/dev\/(tcp|udp)\/[^\s\/]{1,255}\/[0-9]{1,5}/
        $exec = /exec\s+[0-9]+<>\s*\/dev\/(tcp|udp)\/[^\s\/]{1,255}\/[0-9]{1,5}/
        $netcat = /\b(nc|ncat|netcat)\s[^\r\n]{0,80}-[a-z]{0,4}e\s+\/(usr\/)?bin\/(ba|da|z|k)?sh/
        $fifo = /mkfifo\s+(\S{1,200})\s*[;&]{1,2}[^\r\n]{0,200}\|\s*(\/bin\/)?(ba)?sh\s+-i\s[^\r\n]{0,80}\|\s*(nc|ncat|netcat|openssl)\b/
    condition:
        filesize < 1MB and uint32be(0) != 0x7F454C46 and uint16(0) != 0x5A4D and any of them
}

rule PHP_Web_Shell
{
    meta:
        description = "PHP that runs what a request brings"
        classification = "malicious"
        score = 85
        confidence = "high"
        technique = "T1505.003 Web Shell"
    strings:
        $php = /<\?(php|=|\s)/ nocase
        $run = /\b(eval|assert|system|passthru|shell_exec|exec|popen|proc_open|create_function)\s*\(\s*(@?(base64_decode|gzinflate|gzuncompress|str_rot13|stripslashes|trim)\s*\(\s*){0,4}@?\$_(GET|POST|REQUEST|COOKIE|SERVER)\s*\[/ nocase
    condition:
        filesize < 2MB and $php and $run
}
