package dockerapi

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
)

// canaryCode is how the program of a trial ends.
const canaryCode = 42

// canary is the smallest static program that ends with canaryCode, for an
// architecture by the kernel's name (uname -m).
func canary(arch string) ([]byte, error) {
	var machine elf.Machine
	var code []byte
	switch arch {
	case "x86_64", "amd64":
		machine = elf.EM_X86_64
		code = []byte{0xb8, 60, 0, 0, 0, 0xbf, canaryCode, 0, 0, 0, 0x0f, 0x05} // mov $SYS_exit, %eax; mov $42, %edi; syscall
	case "aarch64", "arm64":
		machine = elf.EM_AARCH64
		for _, word := range []uint32{0xd2800000 | canaryCode<<5, 0xd2800008 | 93<<5, 0xd4000001} { // mov x0, #42; mov x8, #SYS_exit; svc #0
			code = binary.LittleEndian.AppendUint32(code, word)
		}
	default:
		return nil, fmt.Errorf("there is no program of the trial for %q", arch)
	}
	const at, header, segment = 0x400000, 64, 56 // sizes as elf(5) has them
	h := elf.Header64{
		Ident: [elf.EI_NIDENT]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)},
		Type:  uint16(elf.ET_EXEC), Machine: uint16(machine), Version: uint32(elf.EV_CURRENT),
		Entry: at + header + segment, Phoff: header, Ehsize: header, Phentsize: segment, Phnum: 1,
	}
	size := uint64(header + segment + len(code))
	p := elf.Prog64{Type: uint32(elf.PT_LOAD), Flags: uint32(elf.PF_R | elf.PF_X), Vaddr: at, Paddr: at, Filesz: size, Memsz: size, Align: 0x10000}
	var out bytes.Buffer
	for _, part := range []any{h, p, code} {
		if err := binary.Write(&out, binary.LittleEndian, part); err != nil {
			return nil, err
		}
	}
	return out.Bytes(), nil
}
