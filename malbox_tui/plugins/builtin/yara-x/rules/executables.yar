import "pe"

rule PE_Process_Injection_Imports
{
    meta:
        description = "Imports what writing into another process and starting a thread there takes"
        classification = "suspicious"
        score = 40
        confidence = "low"
        technique = "T1055 Process Injection"
    condition:
        pe.is_pe and pe.imports("kernel32.dll", "VirtualAllocEx") and pe.imports("kernel32.dll", "WriteProcessMemory") and
        (pe.imports("kernel32.dll", "CreateRemoteThread") or pe.imports("kernel32.dll", "QueueUserAPC") or
         pe.imports("kernel32.dll", "SetThreadContext"))
}

rule Cryptocurrency_Miner
{
    meta:
        description = "Speaks the protocol of mining pools and names a mining algorithm"
        classification = "suspicious"
        score = 70
        confidence = "medium"
        technique = "T1496 Resource Hijacking"
    strings:
        $pool = /stratum\+(tcp|ssl|tls):\/\// nocase ascii wide
        $algorithm = /\b(cryptonight|randomx|rx\/0|ethash|kawpow|argon2\/chukwa)/ nocase ascii wide
        $program = /\b(xmrig|minerd|ccminer|cpuminer|nbminer|phoenixminer)\b/ nocase ascii wide
    condition:
        $pool and ($algorithm or $program)
}
