import "pe"

rule UPX_Packed_PE
{
    meta:
        description = "Packed with UPX: the code can't be seen before it runs"
        classification = "informational"
        score = 20
        confidence = "high"
        technique = "T1027.002 Software Packing"
    condition:
        pe.is_pe and for 2 section in pe.sections : ( section.name matches /^\.?UPX[0-9]$/ )
}

rule UPX_Packed_ELF
{
    meta:
        description = "Packed with UPX: the code can't be seen before it runs"
        classification = "informational"
        score = 20
        confidence = "medium"
        technique = "T1027.002 Software Packing"
    strings:
        $magic = "UPX!"
        $note = "$Info: This file is packed with the UPX executable packer"
    condition:
        uint32be(0) == 0x7F454C46 and $magic in (0..1024) and ($note or #magic > 1)
}
