package seccomp

import (
	"cmp"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"
)

// Offsets in struct seccomp_data (seccomp(2)), little endian.
const (
	offNr   = 0
	offArch = 4
	offArgs = 16
)

// x32Bit marks the x32 ABI on amd64: the same AUDIT_ARCH, another call table.
const x32Bit = 0x40000000

func stmt(code uint16, k uint32) unix.SockFilter { return unix.SockFilter{Code: code, K: k} }

func jump(op uint16, k uint32, jt, jf uint8) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_JMP | op | unix.BPF_K, Jt: jt, Jf: jf, K: k}
}

func load(off uint32) unix.SockFilter { return stmt(unix.BPF_LD|unix.BPF_W|unix.BPF_ABS, off) }

func ret(k uint32) unix.SockFilter { return stmt(unix.BPF_RET|unix.BPF_K, k) }

// Compile turns the rules into a filter for this architecture. Any other
// architecture's calls kill the process: their numbers mean something else.
// It errs when a rule names an argument that does not exist or the program
// would be longer than the kernel takes.
func Compile(rules []Rule) ([]unix.SockFilter, error) {
	prog := []unix.SockFilter{
		load(offArch),
		jump(unix.BPF_JEQ, auditArch, 1, 0),
		ret(unix.SECCOMP_RET_KILL_PROCESS),
		load(offNr),
		jump(unix.BPF_JGE, x32Bit, 0, 1),
		ret(Errno(unix.ENOSYS).ret()),
		jump(unix.BPF_JGT, lastReviewed, 0, 1),
		ret(Errno(unix.ENOSYS).ret()),
	}
	bodies, err := compileCalls(rules)
	if err != nil {
		return nil, err
	}
	prog = append(prog, search(bodies)...)
	if len(prog) > unix.BPF_MAXINSNS {
		return nil, fmt.Errorf("filter has %d instructions; the kernel takes %d", len(prog), unix.BPF_MAXINSNS)
	}
	return prog, nil
}

// body is what the filter does with one call.
type body struct {
	nr   uint32
	code []unix.SockFilter
}

// compileCalls compiles the rules of each call, in order of their numbers.
func compileCalls(rules []Rule) ([]body, error) {
	order, byCall := group(rules)
	slices.SortFunc(order, func(a, b Call) int { return cmp.Compare(a.Nr, b.Nr) })
	bodies := make([]body, len(order))
	for i, c := range order {
		code, err := compileCall(byCall[c.Nr])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.Name, err)
		}
		bodies[i] = body{c.Nr, code}
	}
	return bodies, nil
}

// search emits a binary search for the call's number. The kernel runs the
// filter once for every number when it is loaded, so its length counts twice.
func search(bodies []body) []unix.SockFilter {
	if len(bodies) == 0 {
		return []unix.SockFilter{ret(Allow.ret())}
	}
	if len(bodies) == 1 {
		prog := []unix.SockFilter{jump(unix.BPF_JEQ, bodies[0].nr, 1, 0), ret(Allow.ret())}
		return append(prog, bodies[0].code...)
	}
	mid := len(bodies) / 2
	left, right := search(bodies[:mid]), search(bodies[mid:])
	prog := []unix.SockFilter{
		jump(unix.BPF_JGE, bodies[mid].nr, 0, 1),
		stmt(unix.BPF_JMP|unix.BPF_JA, uint32(len(left))), // a conditional jump reaches 255 only
	}
	return append(append(prog, left...), right...)
}

// group collects the rules of each call, calls in order of first mention.
func group(rules []Rule) ([]Call, map[uint32][]Rule) {
	var order []Call
	byCall := map[uint32][]Rule{}
	for _, r := range rules {
		for _, c := range r.Calls {
			if byCall[c.Nr] == nil {
				order = append(order, c)
			}
			byCall[c.Nr] = append(byCall[c.Nr], r)
		}
	}
	return order, byCall
}

// compileCall emits the rules of one call; it always ends in a return.
func compileCall(rules []Rule) ([]unix.SockFilter, error) {
	var body []unix.SockFilter
	for _, r := range rules {
		code := []unix.SockFilter{ret(r.Action.ret())}
		for _, c := range slices.Backward(r.Conds) {
			if c.Arg < 0 || c.Arg > 5 {
				return nil, fmt.Errorf("BUG(bawn): condition on argument %d", c.Arg)
			}
			code = append(c.test(uint8(len(code))), code...)
		}
		body = append(body, code...)
		if len(r.Conds) == 0 {
			break // nothing after it can be reached
		}
	}
	if n := len(rules); n > 0 && len(rules[n-1].Conds) > 0 {
		body = append(body, ret(Allow.ret()))
	}
	if len(body) > 255 {
		return nil, fmt.Errorf("BUG(bawn): %d instructions for one call", len(body))
	}
	return body, nil
}

// test goes on when the condition holds and skips otherwise.
func (c Cond) test(skip uint8) []unix.SockFilter {
	code := []unix.SockFilter{load(offArgs + 8*uint32(c.Arg))}
	if c.Any {
		return append(code, jump(unix.BPF_JSET, c.Mask, 0, skip))
	}
	if c.Mask != ^uint32(0) {
		code = append(code, stmt(unix.BPF_ALU|unix.BPF_AND|unix.BPF_K, c.Mask))
	}
	return append(code, jump(unix.BPF_JEQ, c.Value, 0, skip))
}
