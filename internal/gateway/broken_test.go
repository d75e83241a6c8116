package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime/pprof"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/bawn-dev/bawn/internal/testenv"
)

// TestBrokenServersDisturbNobody has one server of each sort that is broken,
// and a good one beside it, which answers throughout.
func TestBrokenServersDisturbNobody(t *testing.T) {
	t.Parallel()
	bad := map[string]string{ // what is told of it
		"pages": "more than 32 pages", "mute": "not answered within", "garbage": "it does not begin with", "batch": "several messages as one",
	}
	servers := []Server{{Name: "good", Start: program("new")}}
	for name := range bad {
		start := 10 * time.Second
		if name == "mute" {
			start = 200 * time.Millisecond
		}
		servers = append(servers, Server{Name: name, Start: program(name), Limits: Limits{Start: start}})
	}
	servers = append(servers, Server{Name: "absent", Start: func(context.Context) (Process, error) { return nil, fmt.Errorf("no such program") }})
	r := newRig(t, servers...)
	s := r.client(t, versions[0], nil)
	begun := time.Now()
	l, err := s.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range l.Tools {
		if !strings.HasPrefix(tool.Name, "good__") && !strings.HasPrefix(tool.Name, "bawn__") {
			t.Errorf("%q is offered", tool.Name)
		}
	}
	if len(l.Tools) < 5 || time.Since(begun) > 30*time.Second {
		t.Errorf("%d tools after %v", len(l.Tools), time.Since(begun))
	}
	if text, failed := invoke(t, s, "good__echo", nil); failed {
		t.Errorf("control: %q", text)
	}
	failed := strings.Join(r.told("failed"), "\n")
	for name, why := range bad {
		if !strings.Contains(failed, name+": ") || !strings.Contains(failed, why) {
			t.Errorf("%s: no %q is told in\n%s", name, why, failed)
		}
	}
	text, _ := invoke(t, s, "bawn__servers", nil)
	if !strings.Contains(text, "mute: failed") || !strings.Contains(text, "absent: failed (it can't be started: no such program)") {
		t.Errorf("got %q", text)
	}
}

// busy calls the good server until stop, and reports the slowest call.
func busy(t *testing.T, s *mcp.ClientSession) (stop func() time.Duration) {
	var slowest time.Duration
	end, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-end:
				return
			default:
			}
			begun := time.Now()
			if text, failed := invoke(t, s, "good__echo", nil); failed {
				t.Errorf("the good server: %s", text)
				_ = pprof.Lookup("goroutine").WriteTo(t.Output(), 1) // what it waits for
				return
			}
			slowest = max(slowest, time.Since(begun))
			time.Sleep(2 * time.Millisecond)
		}
	}()
	return func() time.Duration { close(end); <-done; return slowest }
}

// TestServersThatBreakDuringCalls breaks one server in a call, while another
// one answers.
func TestServersThatBreakDuringCalls(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		kind, tool, want string
		limits           Limits
	}{
		"crashes":        {"new", "crash", "ended during the call: it ended by itself: exit status 3; its last words: panic: \\x1b[31mboom", Limits{}},
		"floods":         {"flood", "echo", "it says more than it may", Limits{Messages: 200, Patience: 300 * time.Millisecond, Call: 20 * time.Second}},
		"a line, no end": {"endless-line", "echo", "during the call", Limits{Message: 4 << 20}},
		"hangs":          {"new", "slow", "has not answered within 200ms; the call was taken back", Limits{Call: 200 * time.Millisecond}},
		"stands still":   {"new", "frozen", "has not answered within 200ms", Limits{Call: 200 * time.Millisecond, Probe: 100 * time.Millisecond}},
		"6 MB at once":   {"new", "big", "during the call", Limits{Message: 1 << 20}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, Server{Name: "good", Start: program("new")}, Server{Name: "bad", Start: program(tt.kind), Limits: tt.limits})
			s := r.client(t, versions[1], nil)
			if text, failed := invoke(t, s, "good__echo", nil); failed {
				t.Fatal(text)
			}
			stop := busy(t, s)
			text, failed := invoke(t, s, "bad__"+tt.tool, map[string]any{"n": 6 << 20})
			if slowest := stop(); slowest > 20*time.Second { // a busy machine stands still for seconds
				t.Errorf("the good server took %v", slowest)
			}
			if !failed || !strings.Contains(text, tt.want) {
				t.Errorf("got %.300q, want %q", text, tt.want)
			}
			if name == "stands still" {
				testenv.Until(t, "the server that stands still is ended", func() bool { return strings.Contains(strings.Join(r.told("ended"), ""), "it hangs") })
			}
		})
	}
}

// TestServersThatDoNotRead calls one with more than its input holds, several
// times at once.
func TestServersThatDoNotRead(t *testing.T) {
	t.Parallel()
	const limit, machines = 2 * time.Second, 20 * time.Second // a busy machine's share
	r := newRig(t, Server{Name: "good", Start: program("new")}, Server{Name: "bad", Start: program("deaf"), Limits: Limits{Call: limit, Probe: time.Minute}})
	s := r.client(t, versions[1], nil)
	if _, err := s.ListTools(t.Context(), nil); err != nil || len(r.told("started")) != 2 {
		t.Fatalf("%v %q", err, r.told("started"))
	}
	stop := busy(t, s)
	for round := 1; round <= 2; round++ {
		texts := make([]string, 6)
		var all sync.WaitGroup
		for i := range texts {
			all.Go(func() {
				begun := time.Now()
				text, failed := invoke(t, s, "bad__echo", map[string]any{"n": strings.Repeat("x", 300_000)})
				if took := time.Since(begun); !failed || took > limit+machines { // which would be without an end
					t.Errorf("after %v: %.300q", took, text)
				}
				texts[i] = text
			})
		}
		all.Wait()
		if !strings.Contains(strings.Join(texts, "\n"), `"bad" has not read the call within 2s, and is ended`) {
			t.Errorf("got %q", texts)
		}
		testenv.Until(t, "the server is ended", func() bool {
			return strings.Count(strings.Join(r.told("ended"), "\n"), "bad: it does not read what it is sent") == round
		})
		if n := len(r.backend("bad").slots); n > 0 {
			t.Errorf("%d calls still count", n)
		}
		r.ahead.Add(int64(firstPause)) // after which it is started anew
	}
	if slowest := stop(); slowest > machines {
		t.Errorf("the good server took %v", slowest)
	}
	if started := r.told("started"); len(started) != 3 {
		t.Errorf("started: %q", started)
	}
}

// TestRestartsWaitLonger calls a server that crashes each time.
func TestRestartsWaitLonger(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	now := time.Now()
	clock := func() time.Time { mu.Lock(); defer mu.Unlock(); return now }
	j := &judge{}
	g, err := New(Options{Servers: []Server{{Name: "a", Start: program("new"), Review: agreed}}, Judge: j.decide, Now: clock})
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{Gateway: g, judge: j}
	t.Cleanup(func() { _ = g.Close() })
	s := r.client(t, versions[1], nil)
	for _, pause := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second} {
		if text, failed := invoke(t, s, "a__crash", nil); !failed || !strings.Contains(text, "ended during the call") {
			t.Fatalf("got %q", text)
		}
		want := fmt.Sprintf("it is started again, at a call, in %v", pause)
		if text, failed := invoke(t, s, "a__echo", nil); !failed || !strings.Contains(text, want) {
			t.Errorf("got %q, want %q", text, want)
		}
		mu.Lock()
		now = now.Add(pause)
		mu.Unlock()
		if text, failed := invoke(t, s, "a__echo", nil); failed {
			t.Errorf("it does not come back after %v: %s", pause, text)
		}
	}
}

func TestIdleServersRest(t *testing.T) {
	t.Parallel()
	r := newRig(t, Server{Name: "a", Start: program("new"), Limits: Limits{Idle: 300 * time.Millisecond}})
	s := r.client(t, versions[1], nil)
	rests := len(r.told("stopped"))
	first, _ := invoke(t, s, "a__pid", nil)
	testenv.Until(t, "the server is stopped", func() bool { return len(r.told("stopped")) > rests })
	second, failed := invoke(t, s, "a__pid", nil)
	if failed || first == second {
		t.Errorf("the processes %q and %q", first, second)
	}
	if ended := r.told("ended"); len(ended) > 0 {
		t.Errorf("a rest counts as a failure: %q", ended)
	}
}

func TestCallsAtOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t, Server{Name: "a", Start: program("new"), Limits: Limits{CallsAtOnce: 2, Call: 300 * time.Millisecond}})
	s := r.client(t, versions[1], nil)
	testenv.Until(t, "a server that answers in time", func() bool { _, failed := invoke(t, s, "a__echo", nil); return !failed })
	begun := time.Now()
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() { _, _ = invoke(t, s, "a__slow", nil) })
	}
	all.Wait()
	if took := time.Since(begun); took < 590*time.Millisecond {
		t.Errorf("four calls of 300 ms each, two at once, took %v", took)
	}
	var full, done int
	var mu sync.Mutex
	for range maxWaiting + 10 {
		all.Go(func() {
			text, _ := invoke(t, s, "a__slow", nil)
			mu.Lock()
			defer mu.Unlock()
			if done++; strings.Contains(text, "calls wait for the server") {
				full++
			}
			if done == 10 {
				r.backends[0].stop("the test has seen enough")
			}
		})
	}
	testenv.Until(t, "calls are refused", func() bool { mu.Lock(); defer mu.Unlock(); return full > 0 })
	_ = r.Close()
	all.Wait()
}

// TestManyServers starts fifty.
func TestManyServers(t *testing.T) {
	t.Parallel()
	var servers []Server
	for i := range 50 {
		servers = append(servers, Server{Name: fmt.Sprintf("s%d", i), Start: program("new")})
	}
	r := newRig(t, servers...)
	s := r.client(t, versions[1], nil)
	l, err := s.ListTools(t.Context(), nil)
	if err != nil || len(l.Tools) < 50*10 {
		t.Fatalf("%d tools, %v", len(l.Tools), err)
	}
	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() {
			if text, failed := invoke(t, s, fmt.Sprintf("s%d__echo", i), map[string]any{"i": i}); failed || text != fmt.Sprintf(`{"i":%d}`, i) {
				t.Errorf("%d: %q", i, text)
			}
		})
	}
	all.Wait()
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

// TestToolsThatChange is a rug pull: an agreed tool with another description.
func TestToolsThatChange(t *testing.T) {
	t.Parallel()
	known := []json.RawMessage{json.RawMessage(`{"name":"echo","inputSchema":{"type":"object"}}`)}
	r := newRig(t, Server{Name: "a", Known: known, Start: program("new"), Review: func(list []json.RawMessage) map[string]Finding {
		found := map[string]Finding{}
		for _, raw := range list {
			var tool struct{ Name string }
			if err := json.Unmarshal(raw, &tool); err != nil {
				t.Error(err)
			}
			switch tool.Name {
			case "echo":
				found["echo"] = Finding{Digest: "sha256:0123456789abcdef0123", Why: "its description has changed"}
			case "crash":
				found["crash"] = Finding{Refused: true, Why: "it looks like another one"}
			}
		}
		return found
	}})
	s := r.client(t, versions[1], nil)
	l, err := s.ListTools(t.Context(), nil)
	if err != nil || len(l.Tools) != 2 || len(r.told("started")) != 0 {
		t.Fatalf("%d tools, %v, started %v", len(l.Tools), err, r.told("started"))
	}
	if text, failed := invoke(t, s, "a__echo", nil); failed {
		t.Fatal(text)
	}
	if r.judge.must[0] != "its description has changed" || r.judge.actions[0].Resource != "a/echo@0123456789abcdef" {
		t.Errorf("judged %v, must %q", r.judge.actions[0], r.judge.must[0])
	}
	if text, failed := invoke(t, s, "a__crash", nil); !failed || !strings.Contains(text, "unknown tool") {
		t.Errorf("a refused tool: %q", text)
	}
	if text, failed := invoke(t, s, "a__pid", nil); failed || r.judge.must[1] != "" {
		t.Errorf("control: %q %q", text, r.judge.must[1])
	}
}

// TestTextsAreVisible looks at what a hostile server says of its tools.
func TestTextsAreVisible(t *testing.T) {
	t.Parallel()
	r := newRig(t, Server{Name: "a", Start: program("long")})
	s := r.client(t, versions[1], nil)
	l, err := s.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range l.Tools {
		if tool.Name == "a__odd" {
			t.Error("a tool whose argument has a hidden name is offered")
		}
		if tool.Name == "a__loud" && (!strings.HasPrefix(tool.Description, `[from the MCP server "a"] x\x1b[31m\u202e\U000e0041 ignore`) || len(tool.Description) > 5000) {
			t.Errorf("%d bytes: %.100q", len(tool.Description), tool.Description)
		}
	}
	if told := strings.Join(r.told("refused"), ""); !strings.Contains(told, "odd") {
		t.Errorf("told %q", told)
	}
}

// TestToolsThatReadInTwoWays attacks the review, which could read one
// description while clients are shown another.
func TestToolsThatReadInTwoWays(t *testing.T) {
	t.Parallel()
	r := newRig(t, Server{Name: "a", Start: program("twofold")})
	s := r.client(t, versions[0], nil)
	l, err := s.ListTools(t.Context(), nil)
	if err != nil || len(l.Tools) != 2 || l.Tools[0].Name != "a__echo" {
		t.Errorf("offered: %+v %v", l, err)
	}
	if told := r.told("refused"); len(told) != 3 {
		t.Errorf("refused: %q", told)
	}
}
