package seatbelt

import (
	"slices"
	"testing"

	"github.com/bawn-dev/bawn"
)

func TestMeasure(t *testing.T) {
	const text = "    1     0     1  9000\n  100     1   100  1024\n  101   100   100  2048\n  102   101   102   512\n  103   102   103   512\n  200     1   200 99999\n  x 1 100 1\n 105 1 100\n -5 1 100 7\n"
	u := measure(text, map[int]bool{100: true})
	slices.Sort(u.pids)
	if !slices.Equal(u.pids, []int{100, 101, 102, 103}) || u.memoryKB != 4096 {
		t.Errorf("%+v", u)
	}
	if u := measure(text, nil); len(u.pids) > 0 {
		t.Errorf("of no group: %+v", u)
	}
	if u := measure(text, map[int]bool{1: true}); slices.Contains(u.pids, 1) {
		t.Errorf("the first process is a session's: %+v", u)
	}
	for r, rule := range map[bawn.Resources]string{
		{}: "", {MemoryMB: 4}: "", {MemoryMB: 3}: "limits:memory", {PIDs: 4}: "", {PIDs: 3}: "limits:pids", {MemoryMB: 4, PIDs: 1}: "limits:pids",
	} {
		hit := u.over(r)
		if got := ""; hit != nil {
			got = hit.Rule
			if got != rule {
				t.Errorf("%+v: %q; want %q", r, got, rule)
			}
		} else if rule != "" {
			t.Errorf("%+v: nothing; want %q", r, rule)
		}
	}
}

// FuzzMeasure: whatever ps prints, only its own rows are a session's.
func FuzzMeasure(f *testing.F) {
	f.Add("100 1 100 5\n7 100 7 1\n")
	f.Add("0 0 0 0\n1 1 100 1\n99999999999999999999 1 100 1")
	f.Fuzz(func(t *testing.T, text string) {
		for _, pid := range measure(text, map[int]bool{100: true}).pids {
			if pid <= 1 {
				t.Fatalf("process %d", pid)
			}
		}
	})
}
