package seccomp

import (
	"testing"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"
)

// verdict reads the rules themselves: the first that holds decides.
func verdict(rules []Rule, nr uint32, args [6]uint64) uint32 {
	for _, r := range rules {
		if names(r, nr) && holds(r.Conds, args) {
			return r.Action.ret()
		}
	}
	return Allow.ret()
}

func names(r Rule, nr uint32) bool {
	for _, c := range r.Calls {
		if c.Nr == nr {
			return true
		}
	}
	return false
}

func holds(conds []Cond, args [6]uint64) bool {
	for _, c := range conds {
		v := uint32(args[c.Arg])
		if c.Any && v&c.Mask == 0 || !c.Any && v&c.Mask != c.Value {
			return false
		}
	}
	return true
}

// TestFilterDoesWhatItsRulesSay runs the filters for every number, with
// arguments near those that the rules look at.
func TestFilterDoesWhatItsRulesSay(t *testing.T) {
	for name, rules := range map[string][]Rule{
		"supervised": Guest(true), "bare": Guest(false), "own files": GuestOfOwnFiles(), "nothing": nil, "one": Guest(true)[:1],
		"lower rung": append(append(WithoutIP(), WithoutIPC()...), Guest(true)...),
	} {
		prog, err := Compile(rules)
		if err != nil {
			t.Fatal(err)
		}
		values := []uint64{0, 1, 1 << 32, 1<<64 - 1}
		for _, r := range rules {
			for _, c := range r.Conds {
				values = append(values, uint64(c.Value), uint64(c.Value)^1, uint64(c.Mask), uint64(^c.Mask), uint64(c.Value|^c.Mask))
			}
		}
		for nr := range uint32(lastReviewed + 1) {
			for arg := range 6 {
				for _, v := range values {
					var args [6]uint64
					args[arg] = v
					args[(arg+1)%6] = 2 // a datagram, among others
					if got, want := eval(t, prog, auditArch, nr, args), verdict(rules, nr, args); got != want {
						t.Fatalf("%s: call %d%x: got %#x, want %#x", name, nr, args, got, want)
					}
				}
			}
		}
	}
}

// TestAnyRulesAreCompiled makes rules up.
func TestAnyRulesAreCompiled(t *testing.T) {
	small := rapid.Uint32Range(0, 3)
	cond := rapid.Custom(func(t *rapid.T) Cond {
		return Cond{Arg: rapid.IntRange(0, 2).Draw(t, "arg"), Mask: rapid.SampledFrom([]uint32{1, 2, 3, ^uint32(0)}).Draw(t, "mask"),
			Value: small.Draw(t, "value"), Any: rapid.Bool().Draw(t, "any")}
	})
	rule := rapid.Custom(func(t *rapid.T) Rule {
		r := Rule{Conds: rapid.SliceOfN(cond, 0, 3).Draw(t, "conds"),
			Action: rapid.SampledFrom([]Action{Kill, Allow, Notify, Errno(unix.EPERM)}).Draw(t, "action")}
		for _, nr := range rapid.SliceOfN(rapid.Uint32Range(0, 40), 1, 12).Draw(t, "calls") {
			r.Calls = append(r.Calls, Call{Nr: nr})
		}
		return r
	})
	rapid.Check(t, func(rt *rapid.T) {
		rules := rapid.SliceOfN(rule, 0, 12).Draw(rt, "rules")
		prog, err := Compile(rules)
		if err != nil {
			rt.Fatal(err)
		}
		for nr := range uint32(42) {
			for n := range uint64(64) {
				args := [6]uint64{n & 3, n >> 2 & 3, n >> 4}
				if got, want := eval(t, prog, auditArch, nr, args), verdict(rules, nr, args); got != want {
					rt.Fatalf("call %d%x: got %#x, want %#x", nr, args, got, want)
				}
			}
		}
	})
}
