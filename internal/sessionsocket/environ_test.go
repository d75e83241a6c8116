//go:build linux || darwin

package sessionsocket

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn"
)

// deciding is a policy of one function, which counts what it is asked.
type deciding struct {
	asked int
	allow func(a bawn.Action) bool
}

func (d *deciding) Decide(_ context.Context, a bawn.Action) (bawn.Decision, error) {
	d.asked++
	if d.allow(a) {
		return bawn.Decision{Verdict: bawn.Allow}, nil
	}
	return bawn.Denied("the test says so", "test"), nil
}

// TestProbeKeepsLittle: what a guest names its variables, and says in them, is
// not kept for the rest of the session.
func TestProbeKeepsLittle(t *testing.T) {
	const most = 1 << 20
	var p probe
	d := &deciding{allow: func(bawn.Action) bool { return true }}
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	long := strings.Repeat("x", 64<<10)
	before := heap()
	for i := range maxProbes {
		if !p.free(t.Context(), d, bawn.Action{Dir: "/w"}, fmt.Sprintf("A%d=%s", i, long)) {
			t.Fatal("control: an allowed variable is not free")
		}
	}
	kept := int64(heap()) - int64(before)
	if kept > most {
		t.Errorf("%d variables of %d bytes leave %d bytes behind; want %d at most", maxProbes, len(long), kept, most)
	}
	if d.asked != maxProbes || len(p.seen) != maxProbes {
		t.Errorf("asked %d times, %d remembered; want %d", d.asked, len(p.seen), maxProbes)
	}
	p.free(t.Context(), d, bawn.Action{Dir: "/w"}, "A1="+long)
	if d.asked != maxProbes {
		t.Error("a variable that is remembered is asked about again")
	}
	p.free(t.Context(), d, bawn.Action{Dir: "/w"}, "B=1")
	if len(p.seen) > maxProbes {
		t.Errorf("%d variables are remembered; want %d at most", len(p.seen), maxProbes)
	}
	runtime.KeepAlive(&p)
}

// TestProbeKnowsItsPlace: what may be set in one directory is not thereby free
// in another, nor what begins like it.
func TestProbeKnowsItsPlace(t *testing.T) {
	var p probe
	d := &deciding{allow: func(a bawn.Action) bool { return a.Dir == "/w" && strings.HasSuffix(a.Resource, "./bin") }}
	for _, tt := range []struct {
		dir, kv string
		want    bool
	}{{"/w", "A=./bin", true}, {"/x", "A=./bin", false}, {"/w", "A=./bi", false}, {"/w", "A=./bin", true}} {
		if got := p.free(t.Context(), d, bawn.Action{Dir: tt.dir}, tt.kv); got != tt.want {
			t.Errorf("%s in %s: %v; want %v", tt.kv, tt.dir, got, tt.want)
		}
	}
}
