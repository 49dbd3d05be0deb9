// Scripts that fetch code and run it at once.

private rule Is_Text_Like
{
    condition:
        filesize < 2MB and uint16(0) != 0x5A4D and uint32be(0) != 0x7F454C46
}

rule PowerShell_Download_Cradle
{
    meta:
        description = "PowerShell that downloads code and runs it"
        classification = "suspicious"
        score = 70
        confidence = "medium"
        technique = "T1059.001 PowerShell"
    strings:
        $client = /new-object\s+(-typename\s+)?\(?['"]?(system\.)?net\.webclient/ nocase ascii wide
        $string = /\.\s*download(string|data|file)\s*\(/ nocase ascii wide
        $request = /\b(invoke-webrequest|invoke-restmethod|iwr|irm|start-bitstransfer)\b[^\r\n]{0,200}https?:/ nocase ascii wide
        $run = /\b(iex|invoke-expression|start-process|invoke-item)\b/ nocase ascii wide
        $load = /\[(system\.)?reflection\.assembly\]::load/ nocase ascii wide
    condition:
        Is_Text_Like and (($client and $string) or $request) and ($run or $load)
}

rule PowerShell_Encoded_Command
{
    meta:
        description = "PowerShell started with a command in base64"
        classification = "suspicious"
        score = 60
        confidence = "medium"
        technique = "T1027.010 Command Obfuscation"
    strings:
        $call = /(powershell|pwsh)(\.exe)?["']?\s[^\r\n]{0,120}-e(nc|ncodedcommand|c)?\s+["']?[A-Za-z0-9+\/]{40,}/ nocase ascii wide
    condition:
        Is_Text_Like and $call
}

rule Shell_Download_And_Run
{
    meta:
        description = "A shell script that pipes a download into a shell, or fetches a program from a bare address and makes it executable"
        classification = "suspicious"
        score = 60
        confidence = "low"
        technique = "T1105 Ingress Tool Transfer"
    strings:
        $shell = /^#!\s?\/(usr\/)?(local\/)?bin\/(env\s+)?(ba|da|z|k)?sh/
        $pipe = /\b(curl|wget)\s[^\r\n|]{0,300}(https?|ftp):\/\/[^\r\n|]{1,300}\|\s*(sudo\s+)?(\/(usr\/)?bin\/)?(ba|da|z|k)?sh\b/
        $bare = /\b(curl|wget|tftp|ftpget)\s[^\r\n]{0,200}(https?|ftp):\/\/[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}/
        $executable = /\bchmod\s+(\+x|[0-7]{0,1}7[0-7]{2})\b/
    condition:
        Is_Text_Like and ($pipe or ($bare and $executable)) and ($shell at 0 or filesize < 4KB)
}

rule Windows_Script_Download_Cradle
{
    meta:
        description = "A script for Windows Script Host or HTA that downloads and runs something"
        classification = "suspicious"
        score = 65
        confidence = "medium"
        technique = "T1059.005 Visual Basic"
    strings:
        $http = /(msxml2\.(server)?xmlhttp|winhttp\.winhttprequest|microsoft\.xmlhttp)/ nocase ascii wide
        $stream = "adodb.stream" nocase ascii wide
        $shell = /(wscript\.shell|shell\.application)/ nocase ascii wide
        $run = /\.(run|exec|shellexecute)\b/ nocase ascii wide
    condition:
        Is_Text_Like and $http and $shell and ($run or $stream)
}

rule Living_Off_The_Land_Download
{
    meta:
        description = "A system program of Windows is used to fetch or run remote code"
        classification = "suspicious"
        score = 65
        confidence = "medium"
        technique = "T1218 System Binary Proxy Execution"
    strings:
        $certutil = /\bcertutil(\.exe)?\s[^\r\n]{0,80}-urlcache[^\r\n]{0,80}https?:/ nocase ascii wide
        $mshta = /\bmshta(\.exe)?\s+["']?(https?:|javascript:|vbscript:)/ nocase ascii wide
        $regsvr32 = /\bregsvr32(\.exe)?\s[^\r\n]{0,80}\/i:https?:[^\r\n]{0,200}scrobj/ nocase ascii wide
        $bitsadmin = /\bbitsadmin(\.exe)?\s[^\r\n]{0,80}\/transfer[^\r\n]{0,120}https?:/ nocase ascii wide
    condition:
        Is_Text_Like and any of them
}
