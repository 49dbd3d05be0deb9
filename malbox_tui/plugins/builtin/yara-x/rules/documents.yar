rule PDF_Runs_Something_When_Opened
{
    meta:
        description = "A PDF that starts JavaScript or a program when it is opened"
        classification = "suspicious"
        score = 45
        confidence = "low"
        technique = "T1204.002 Malicious File"
    strings:
        $pdf = "%PDF-"
        $open = /\/(OpenAction|AA)\b/
        $script = /\/(JavaScript|JS)\b/
        $launch = /\/Launch\b/
    condition:
        $pdf in (0..1024) and $open and ($script or $launch)
}

rule RTF_Equation_Editor_Object
{
    meta:
        description = "An RTF document with an embedded object of the Equation Editor, which has known holes (CVE-2017-11882)"
        classification = "suspicious"
        score = 75
        confidence = "medium"
        technique = "T1203 Exploitation for Client Execution"
    strings:
        $rtf = { 7B 5C 72 74 }
        $object = /\\obj(data|update|ocx|emb)/
        $class = "Equation.3" nocase
        $class_hex = /4\s*5\s*7\s*1\s*7\s*5\s*6\s*1\s*7\s*4\s*6\s*9\s*6\s*f\s*6\s*e\s*2\s*e\s*3\s*3/ nocase
        $clsid = "0002ce02" nocase
    condition:
        $rtf at 0 and $object and any of ($class, $class_hex, $clsid)
}
