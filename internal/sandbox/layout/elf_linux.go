package layout

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"strings"
)

// Offsets and numbers of an ELF header (elf(5)).
const (
	elfMagic     = "\x7fELF"
	elf64        = 2
	elfLittle    = 1
	elfHeader    = 64 // bytes of a 64-bit header
	programEntry = 56 // and of an entry of its program header table
	ptInterp     = 3
)

// machines are the names of e_machine's values, as Go spells them.
var machines = map[uint16]string{3: "386", 40: "arm", 62: "amd64", 183: "arm64", 8: "mips", 20: "ppc", 21: "ppc64", 22: "s390x", 243: "riscv64", 258: "loong64"}

// wrongFormat says why the kernel takes a file for no program (ENOEXEC).
func wrongFormat(head, name string) (why, remedy string) {
	if !strings.HasPrefix(head, elfMagic) {
		return "is no program: neither a binary nor a script whose first line begins with \"#!\"", "name its interpreter, for example: bawn run -- sh " + name
	}
	if len(head) < elfHeader {
		return "is a damaged program", "build or fetch it again"
	}
	order := binary.ByteOrder(binary.LittleEndian)
	if head[5] != elfLittle {
		order = binary.BigEndian
	}
	number := order.Uint16([]byte(head[18:20]))
	machine := machines[number]
	if machine == "" {
		machine = fmt.Sprintf("machine %d", number)
	}
	if machine == runtime.GOARCH {
		return "is a damaged program, or one for another system", "build or fetch it again"
	}
	return fmt.Sprintf("is a program for %s, and this machine is %s", machine, runtime.GOARCH), "get a build for " + runtime.GOARCH
}

// loader says that a binary's dynamic loader is not there (ENOENT).
func (p *Plan) loader(head string) (why, remedy string) {
	name := elfInterpreter(head)
	if name == "" {
		return "", ""
	}
	if v := p.see(name); v.by != nil {
		return fmt.Sprintf("its loader %q is not in the sandbox", name), v.remedy()
	}
	return fmt.Sprintf("its loader %q does not exist", name), "install the C library it was built for, or get a static build"
}

// elfInterpreter returns the path of the loader that a 64-bit little-endian
// program asks for, "" where it asks for none within head.
func elfInterpreter(head string) string {
	b := []byte(head)
	if !strings.HasPrefix(head, elfMagic) || len(b) < elfHeader || b[4] != elf64 || b[5] != elfLittle {
		return ""
	}
	le := binary.LittleEndian
	table, count := le.Uint64(b[32:]), uint64(le.Uint16(b[56:]))
	for i := range count {
		at := table + i*programEntry
		if at > uint64(len(b)) || at+programEntry > uint64(len(b)) {
			return ""
		}
		if le.Uint32(b[at:]) != ptInterp {
			continue
		}
		offset, size := le.Uint64(b[at+8:]), le.Uint64(b[at+32:])
		if offset > uint64(len(b)) || size > uint64(len(b))-offset {
			return ""
		}
		return strings.TrimRight(string(b[offset:offset+size]), "\x00")
	}
	return ""
}
