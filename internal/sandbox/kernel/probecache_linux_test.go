package kernel

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/bawn-dev/bawn/internal/linux/cgroup"
)

// TestProbeIsKept writes the cache, changes what it says and finds that again,
// but not under another boot.
func TestProbeIsKept(t *testing.T) {
	cache := filepath.Join(t.TempDir(), "bawn", "probe")
	trial := func() []string { return []string{"tried", "", "now"} }
	look := func() support { return probe(cache, 3, trial) }
	first := look()
	if got := look(); !reflect.DeepEqual(got, first) {
		t.Errorf("second look: got %v, want %v", got, first)
	}
	now, ok := here()
	if !ok {
		t.Fatal("this machine can't be told from others")
	}
	said := support{cgroup.Support{Memory: cgroup.Controller{Name: "memory", Version: 2, Dir: "/d", Partly: "swap"}, PIDs: cgroup.Controller{Name: "pids", Why: "because", Remedy: "wait"}}, netSupport{err: "no nftables", fix: "load it"}, []string{"false", "closed", "open them"}}
	for _, c := range []struct {
		text string
		want support
	}{
		{now + formatSupport(said), said},
		{"another boot" + now + formatSupport(said), first},
		{now + "half", first},
		{now + formatSupport(support{}), first}, // by a provider that tried less
		{"", first},
	} {
		if err := os.WriteFile(cache, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := look(); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%q: got %v, want %v", c.text, got, c.want)
		}
	}
}

func FuzzParseSupport(f *testing.F) {
	f.Add(formatSupport(support{}))
	f.Add(formatSupport(support{cgroup.Support{CPU: cgroup.Controller{Name: "cpu", Version: 1, Dir: "/x", Why: "y"}}, netSupport{ok: true, ipv6: true}, []string{"true", "", ""}}))
	f.Add("memory\x001")
	f.Fuzz(func(t *testing.T, text string) {
		s, ok := parseSupport(text)
		if !ok {
			if !reflect.DeepEqual(s, support{}) {
				t.Errorf("refused, and still %+v", s)
			}
			return
		}
		if again, ok := parseSupport(formatSupport(s)); !ok || !reflect.DeepEqual(again, s) {
			t.Errorf("got %+v, %v; want %+v", again, ok, s)
		}
	})
}

// TestSweepIsDueOnceInAWhile moves the stamp's time.
func TestSweepIsDueOnceInAWhile(t *testing.T) {
	stamp := filepath.Join(t.TempDir(), "swept")
	for _, c := range []struct {
		age  time.Duration
		want bool
	}{{0, false}, {time.Hour, true}, {-time.Hour, true}} {
		if !due(stamp, time.Minute) {
			t.Fatal("not due the first time")
		}
		at := time.Now().Add(-c.age)
		if err := os.Chtimes(stamp, at, at); err != nil {
			t.Fatal(err)
		}
		if got := due(stamp, time.Minute); got != c.want {
			t.Errorf("written %v ago: due %v, want %v", c.age, got, c.want)
		}
		if err := os.Remove(stamp); err != nil {
			t.Fatal(err)
		}
	}
}
