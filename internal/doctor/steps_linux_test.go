package doctor

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bawn-dev/bawn"
)

// TestExamineBlamesTheFirst: what stands on a failed check is not tried, and
// names what has to be mended first; what stands alone is tried.
func TestExamineBlamesTheFirst(t *testing.T) {
	good := func() Check { return Check{OK: true, Needed: true} }
	bad := func() Check { return Check{Needed: true, Detail: "broken", Remedy: "mend it"} }
	untried := func(name string) Check {
		return Check{Name: name, Needed: true, NotTried: true, Detail: "not tried: needs root"}
	}
	never := func() Check { t.Error("tried in spite of what it needs"); return Check{} }
	got := examine([]step{{"root", nil, bad}, {"child", []string{"root"}, never}, {"grandchild", []string{"alone", "child"}, never}, {"alone", nil, good}, {"on it", []string{"alone"}, good}})
	want := []Check{{Name: "root", Needed: true, Detail: "broken", Remedy: "mend it"}, untried("child"), untried("grandchild"),
		{Name: "alone", OK: true, Needed: true}, {Name: "on it", OK: true, Needed: true}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if (Report{Checks: got}).Healthy() {
		t.Error("healthy although a check is untried")
	}
}

// TestProven: a capability counts only where the sandbox as a whole works.
func TestProven(t *testing.T) {
	promised := []bawn.Capability{{Attribute: "fs.write", Strength: bawn.Enforced, How: "mounts"}, {Attribute: "limits.cpu", Strength: bawn.Partly, Remedy: "mend it"}}
	if diff := cmp.Diff(promised, proven(promised, Check{OK: true})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for _, whole := range []Check{{Detail: "broken"}, {NotTried: true, Detail: "not tried: needs root"}} {
		for i, c := range proven(promised, whole) {
			if c.Attribute != promised[i].Attribute || c.Strength != bawn.Unenforced || c.How != "" || c.Why == "" || c.Remedy != "" {
				t.Errorf("%+v: got %+v", whole, c)
			}
		}
	}
}

// TestLandlockGaps: each older ABI leaves more to the other walls.
func TestLandlockGaps(t *testing.T) {
	for abi, want := range map[int]int{1: 4, 2: 3, 3: 2, 4: 2, 5: 1, 6: 0, 7: 0} {
		if got := strings.Count(landlockGaps(abi), "it "); got != want {
			t.Errorf("ABI %d: %d gaps, want %d: %q", abi, got, want, landlockGaps(abi))
		}
	}
}
