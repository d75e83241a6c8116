package gateway

import (
	"context"
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/bawn-dev/bawn"
)

// pinned is the tool "echo" as a human has agreed to it.
var pinned = []json.RawMessage{json.RawMessage(`{"name":"echo","inputSchema":{"type":"object"}}`)}

// slowly starts a server of a kind when it may, and counts that.
func slowly(kind string, may chan struct{}, starts *atomic.Int32) func(context.Context) (Process, error) {
	start := program(kind)
	return func(ctx context.Context) (Process, error) {
		starts.Add(1)
		<-may
		return start(ctx)
	}
}

// TestColdTools lists and calls what a human has agreed to before the server
// runs. The control is a server of which nothing is known: it is started to be
// asked.
func TestColdTools(t *testing.T) {
	may := make(chan struct{})
	var starts, control atomic.Int32
	r := newRig(t, Server{Name: "a", Start: slowly("new", may, &starts), Known: pinned}, Server{Name: "b", Start: func(context.Context) (Process, error) {
		control.Add(1)
		return program("new")(t.Context())
	}})
	s := r.client(t, versions[0], nil)
	l, err := s.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range l.Tools {
		if strings.HasSuffix(tool.Name, "__echo") {
			names = append(names, tool.Name)
		}
	}
	if d := cmp.Diff([]string{"a__echo", "b__echo"}, names); d != "" || starts.Load() != 0 || control.Load() != 1 {
		t.Errorf("%s; started %d and %d times", d, starts.Load(), control.Load())
	}
	go func() { time.Sleep(200 * time.Millisecond); close(may) }()
	if text, failed := invoke(t, s, "a__echo", map[string]any{"x": 1}); failed || text != `{"x":1}` || starts.Load() != 1 {
		t.Errorf("a call of a server that does not run yet: %q, started %d times", text, starts.Load())
	}
}

// TestColdRug calls a server whose tools are not those that were agreed to any
// more: a human is asked about the tool as it is now, before the call. The
// control is a server that has not changed.
func TestColdRug(t *testing.T) {
	const tampered = "its description is not the one that is pinned"
	for name, c := range map[string]struct {
		review func([]json.RawMessage) map[string]Finding
		called bool
		asked  []string
	}{
		"control": {agreed, true, []string{"tool call a/echo"}},
		"changed": {func([]json.RawMessage) map[string]Finding {
			return map[string]Finding{"echo": {Digest: "sha256:0123456789abcdef0", Why: tampered}}
		}, false, []string{"tool call a/echo@0123456789abcdef"}},
		"refused": {func([]json.RawMessage) map[string]Finding {
			return map[string]Finding{"echo": {Refused: true, Why: "it is listed twice"}}
		}, false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, Server{Name: "a", Start: program("new"), Known: pinned, Review: c.review})
			r.judge.deny = func(a bawn.Action) bool { return strings.Contains(a.Resource, "@") } // a human who says no
			s := r.client(t, versions[1], nil)
			text, failed := invoke(t, s, "a__echo", map[string]any{"x": 1})
			if failed == c.called || c.called != (text == `{"x":1}`) {
				t.Errorf("called: %t: %q", !failed, text)
			}
			if d := cmp.Diff(strings.Join(c.asked, "\n"), r.judge.seen()); d != "" {
				t.Error(d)
			}
			if name == "changed" && !cmp.Equal(r.judge.must, []string{tampered}) {
				t.Errorf("asked because of %q", r.judge.must)
			}
		})
	}
}

// TestRestartRug ends a server between the decision and the call. What runs then
// has other tools: the decision was about none of them.
func TestRestartRug(t *testing.T) {
	for _, changes := range []bool{false, true} {
		var lives atomic.Int32
		start := program("new")
		r := newRig(t, Server{Name: "a", Known: pinned, Start: func(ctx context.Context) (Process, error) { lives.Add(1); return start(ctx) }, Review: func([]json.RawMessage) map[string]Finding {
			if changes && lives.Load() > 1 {
				return map[string]Finding{"echo": {Digest: "sha256:feed", Why: "it has changed"}}
			}
			return nil
		}})
		s := r.client(t, versions[0], nil)
		if text, failed := invoke(t, s, "a__echo", nil); failed {
			t.Fatal(text)
		}
		r.judge.deny = func(a bawn.Action) bool {
			if lives.Load() == 1 {
				r.backend("a").stop("the test says so")
			}
			return strings.Contains(a.Resource, "@feed")
		}
		text, failed := invoke(t, s, "a__echo", map[string]any{"x": 1})
		if failed != changes || lives.Load() != 2 {
			t.Errorf("it changes: %t: called: %t in life %d: %q", changes, !failed, lives.Load(), text)
		}
	}
}

// TestColdNames calls what no server has, cold and warm.
func TestColdNames(t *testing.T) {
	r := newRig(t, Server{Name: "a", Start: program("new"), Known: pinned})
	s := r.client(t, versions[0], nil)
	for _, name := range []string{"a__none", "b__echo", "a", "echo"} {
		_, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: name})
		if err == nil || !strings.Contains(err.Error(), "unknown tool") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
