package seccomp

import (
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
	prog := append(make(program, 0, 1024),
		load(offArch),
		jump(unix.BPF_JEQ, auditArch, 1, 0),
		ret(unix.SECCOMP_RET_KILL_PROCESS),
		load(offNr),
		jump(unix.BPF_JGE, x32Bit, 0, 1),
		ret(Errno(unix.ENOSYS).ret()),
		jump(unix.BPF_JGT, lastReviewed, 0, 1),
		ret(Errno(unix.ENOSYS).ret()),
	)
	if err := prog.search(spans(byCall(rules))); err != nil {
		return nil, err
	}
	if len(prog) > unix.BPF_MAXINSNS {
		return nil, fmt.Errorf("filter has %d instructions; the kernel takes %d", len(prog), unix.BPF_MAXINSNS)
	}
	return prog, nil
}

// A program grows instruction by instruction: this runs at each start.
type program []unix.SockFilter

func (p *program) emit(f unix.SockFilter) { *p = append(*p, f) }

// ruled is one call with its rules, in the order in which they were stated.
type ruled struct {
	Call
	rules []*Rule
}

// byCall groups the rules by call, calls in order of their numbers.
func byCall(rules []Rule) []ruled {
	// One number for each mention of a call: the call's, the rule's place, and
	// the call's place in the rule. Sorting those keeps the rules in order.
	mentions := make([]uint64, 0, 256)
	for i, r := range rules {
		for j, c := range r.Calls {
			mentions = append(mentions, uint64(c.Nr)<<32|uint64(i)<<16|uint64(j))
		}
	}
	slices.Sort(mentions)
	flat := make([]*Rule, len(mentions))
	list := make([]ruled, 0, len(mentions))
	for i, m := range mentions {
		r := &rules[m>>16&0xffff]
		flat[i] = r
		if n := len(list); n > 0 && list[n-1].Nr == uint32(m>>32) {
			list[n-1].rules = flat[i-len(list[n-1].rules) : i+1] // they lie side by side
			continue
		}
		list = append(list, ruled{r.Calls[m&0xffff], flat[i : i+1]})
	}
	return list
}

// A span is a range of call numbers, up to where the next span begins, that all
// get the same action, or one call with further rules.
type span struct {
	from   uint32
	action Action
	rules  *ruled // or nil
}

// spans covers all numbers: a call that no rule names is allowed.
func spans(calls []ruled) []span {
	list := append(make([]span, 0, 2*len(calls)+1), span{action: Allow})
	for i := range calls {
		c := &calls[i]
		now := span{from: c.Nr, action: c.rules[0].Action}
		if len(c.rules[0].Conds) > 0 {
			now.rules = c
		}
		if list[len(list)-1].from == now.from {
			list = list[:len(list)-1] // neighbours leave no gap, nor is there one before call 0
		}
		if n := len(list); n == 0 || now.rules != nil || list[n-1].rules != nil || list[n-1].action != now.action {
			list = append(list, now)
		}
		if now.rules != nil || now.action != Allow {
			list = append(list, span{from: c.Nr + 1, action: Allow})
		}
	}
	return list
}

// search emits a binary search for the call's number. The kernel translates
// the filter, and runs it once for every number, when it is loaded: its length
// counts twice.
func (p *program) search(list []span) error {
	if len(list) == 1 {
		return p.leaf(list[0])
	}
	mid := len(list) / 2
	at := len(*p)
	p.emit(jump(unix.BPF_JGE, list[mid].from, 0, 0))
	if err := p.search(list[:mid]); err != nil {
		return err
	}
	if left := len(*p) - at - 1; left <= 255 {
		(*p)[at].Jt = uint8(left)
	} else { // farther than a conditional jump reaches
		(*p)[at].Jf = 1
		*p = slices.Insert(*p, at+1, stmt(unix.BPF_JMP|unix.BPF_JA, uint32(left)))
	}
	return p.search(list[mid:])
}

// leaf emits what becomes of the calls of one span; that always ends in a return.
func (p *program) leaf(s span) error {
	if s.rules == nil {
		p.emit(ret(s.action.ret()))
		return nil
	}
	start := len(*p)
	last := s.rules.rules[0]
	for _, r := range s.rules.rules {
		if err := p.rule(r); err != nil {
			return fmt.Errorf("%s: %w", s.rules.Name, err)
		}
		if last = r; len(r.Conds) == 0 {
			break // nothing after it can be reached
		}
	}
	if len(last.Conds) > 0 {
		p.emit(ret(Allow.ret()))
	}
	if n := len(*p) - start; n > 255 {
		return fmt.Errorf("%s: BUG(bawn): %d instructions for one call", s.rules.Name, n)
	}
	return nil
}

// rule emits one rule: a failed test skips the rest of it.
func (p *program) rule(r *Rule) error {
	rest := 1
	for _, c := range r.Conds {
		if c.Arg < 0 || c.Arg > 5 {
			return fmt.Errorf("BUG(bawn): condition on argument %d", c.Arg)
		}
		rest += c.size()
	}
	for _, c := range r.Conds {
		rest -= c.size()
		p.test(c, uint8(rest))
	}
	p.emit(ret(r.Action.ret()))
	return nil
}

// size is how many instructions test emits.
func (c Cond) size() int {
	if c.Any || c.Mask == ^uint32(0) {
		return 2
	}
	return 3
}

// test goes on when the condition holds and skips otherwise.
func (p *program) test(c Cond, skip uint8) {
	p.emit(load(offArgs + 8*uint32(c.Arg)))
	if c.Any {
		p.emit(jump(unix.BPF_JSET, c.Mask, 0, skip))
		return
	}
	if c.Mask != ^uint32(0) {
		p.emit(stmt(unix.BPF_ALU|unix.BPF_AND|unix.BPF_K, c.Mask))
	}
	p.emit(jump(unix.BPF_JEQ, c.Value, 0, skip))
}
