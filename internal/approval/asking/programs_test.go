package asking

import (
	"fmt"
	"testing"
	"time"

	"github.com/bawn-dev/bawn"
)

// TestNamed: a yes to a line names its programs once each, for a while, and no other words
// or directories.
func TestNamed(t *testing.T) {
	now := time.Now()
	d := New(Options{Now: func() time.Time { return now }, Programs: func(a bawn.Action) []bawn.Action { return []bawn.Action{a} }})
	t.Cleanup(d.Close)
	id := bawn.Action{Kind: bawn.Command, Operation: bawn.Exec, Args: []string{"id", "-u"}, Dir: "/p"}
	other, elsewhere := id, id
	other.Args, elsewhere.Dir = []string{"id", "-G"}, "/q"
	yes := bawn.Answer{Verdict: bawn.Allow}
	d.names(id, bawn.Answer{Verdict: bawn.Deny})
	if d.Named(id) {
		t.Error("a no names a program")
	}
	d.names(id, yes)
	if d.Named(other) || d.Named(elsewhere) {
		t.Error("other words, or another directory, count as named")
	}
	if !d.Named(id) || d.Named(id) {
		t.Error("what one line names counts never, or twice")
	}
	d.names(id, yes)
	d.names(id, yes)
	now = now.Add(opensFor)
	d.names(id, yes)
	if !d.Named(id) || d.Named(id) {
		t.Error("of what was named some time ago and what is named now the last does not count, or both do")
	}
	if d.named.n != 0 || len(d.named.until) > 1 {
		t.Errorf("%d programs stay", d.named.n)
	}
	for i := range 3 * maxNamed {
		id.Args = []string{"id", fmt.Sprint(i)}
		d.names(id, yes)
	}
	if d.named.n > maxNamed || !d.Named(id) {
		t.Errorf("after a flood %d programs are kept; want at most %d, and the last", d.named.n, maxNamed)
	}
}
