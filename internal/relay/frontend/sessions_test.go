package frontend

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/attach"
	"github.com/bawn-dev/bawn/internal/audit"
	"github.com/bawn-dev/bawn/internal/relay/api"
	bawnv1 "github.com/bawn-dev/bawn/proto/bawn/v1"
)

// enter registers a session that runs as long as the test.
func enter(t *testing.T, dir string, e attach.Entry) {
	t.Helper()
	e.Started = time.Now()
	p, err := attach.Register(dir, e)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Remove)
}

// TestSessions: parents come first, with what the log says holds them and which
// connections are open; guests' texts are fit to be shown.
func TestSessions(t *testing.T) {
	dir, log := t.TempDir(), filepath.Join(t.TempDir(), "audit")
	enter(t, dir, attach.Entry{ID: "child", Parent: "root", Agent: "b", Network: "off"})
	enter(t, dir, attach.Entry{ID: "root", Agent: "a\x1b[2J", Argv: []string{"make", "\u202e"}, Workspace: "/w", Mode: "normal", Network: "filtered", Zones: []string{"R", "E"}})
	l, err := audit.Open(log, audit.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	record := func(e bawn.Event) {
		t.Helper()
		e.Time, e.Session = time.Now(), "root"
		if err := l.Record(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	connect := func(host string) {
		record(bawn.Event{Kind: "network", Operation: "connect", Resource: host, Resolved: bawn.Allow})
	}
	record(bawn.Event{Kind: "command", Operation: "exec", Resolved: bawn.Allow, Provider: "native", Details: map[string]string{"profile": "standard", "network": "filtered", "write /w": "workspace", "in part memory": "cgroup v1"}})
	connect("a.example:443")
	connect("a.example:443")
	connect("b.example:443")
	record(bawn.Event{Kind: "network", Operation: "connect", Resource: "evil.example:443"}) // denied
	s := newSessions(dir, log)
	list := func() []*bawnv1.Session {
		t.Helper()
		s.flow.looked = time.Time{}
		out, err := s.List(t.Context(), false)
		if err != nil || len(out) != 2 {
			t.Fatalf("%v %v", out, err)
		}
		return out
	}
	out := list()
	if root := out[0]; root.GetId() != "root" || out[1].GetParent() != "root" || root.GetAgent() != `a\x1b[2J` || root.GetCommand() != `make \u202e` || !root.GetSplit() || !root.GetAlive() {
		t.Errorf("%v", out)
	}
	if text := fmt.Sprint(out[0].GetEnforced()); !strings.Contains(text, "standard") || !strings.Contains(text, `name:"memory"`) || len(out[0].GetEnforced()) != 5 {
		t.Errorf("enforced %s", text)
	}
	open := func() (text string) {
		for _, c := range list()[0].GetConnections() {
			text += fmt.Sprintf("%s×%d %d/%d ", c.GetHost(), c.GetCount(), c.GetSent(), c.GetReceived())
		}
		return text
	}
	if got := open(); got != "a.example:443×2 0/0 b.example:443×1 0/0 " {
		t.Errorf("open %q", got)
	}
	for _, host := range []string{"a.example:443", "b.example:443", "never.example:443"} {
		record(bawn.Event{Kind: "network", Operation: "end", Resource: host, Resolved: bawn.Allow, Details: map[string]string{"bytesOut": "5", "bytesIn": "7"}})
	}
	if got := open(); got != "a.example:443×1 5/7 " {
		t.Errorf("then open %q", got)
	}
	if again := newSessions(dir, log); fmt.Sprint(list()) != fmt.Sprint(func() []*bawnv1.Session { o, _ := again.List(t.Context(), false); return o }()) {
		t.Error("a relay that is started anew shows something else")
	}
}

// TestCircle: entries are files; parents in a circle end nothing.
func TestCircle(t *testing.T) {
	out := below([]attach.Entry{{ID: "a", Parent: "b"}, {ID: "b", Parent: "a"}, {ID: "c", Parent: "c"}, {ID: "d", Parent: "gone"}})
	if len(out) != 4 || out[0].ID != "d" {
		t.Errorf("%v", out)
	}
}

// TestNoSuchSession: IDs without a session reach nothing.
func TestNoSuchSession(t *testing.T) {
	s := newSessions(t.TempDir(), "")
	for _, id := range []string{"", "nothing", "../../etc", "a/b"} {
		if err := s.Kill(t.Context(), id); !errors.Is(err, api.ErrNoSession) {
			t.Errorf("kill %q: %v", id, err)
		}
		if _, err := s.Attach(t.Context(), id, true); !errors.Is(err, api.ErrNoSession) {
			t.Errorf("attach %q: %v", id, err)
		}
	}
}
