package gateway

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/testenv"
)

func each(t *testing.T, f func(t *testing.T, version, server string)) {
	for _, v := range versions {
		for _, server := range []string{"new", "old"} {
			t.Run(v+" to "+server, func(t *testing.T) { t.Parallel(); f(t, v, server) })
		}
	}
}

func TestToolsOfManyServers(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, version, server string) {
		r := newRig(t, Server{Name: "a", Start: program(server)}, Server{Name: "b", Start: program("new")})
		s := r.client(t, version, nil)
		l, err := s.ListTools(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, tool := range l.Tools {
			names = append(names, tool.Name)
		}
		for _, want := range []string{"a__echo", "b__echo", "bawn__servers"} {
			if !slices.Contains(names, want) {
				t.Errorf("no %q in %q", want, names)
			}
		}
		a, _ := invoke(t, s, "a__pid", nil)
		b, _ := invoke(t, s, "b__pid", nil)
		if a == b || a == "" {
			t.Errorf("two servers are the process %q", a)
		}
		if text, failed := invoke(t, s, "b__echo", map[string]any{"n": 12345678901234567, "s": "<&>"}); failed || text != `{"n":12345678901234567,"s":"<&>"}` {
			t.Errorf("got %q %v", text, failed)
		}
		if text, _ := invoke(t, s, "bawn__servers", nil); !strings.Contains(text, "a: runs\nb: runs") {
			t.Errorf("got %q", text)
		}
		if got := r.judge.seen(); !strings.Contains(got, "tool call b/echo") {
			t.Errorf("judged: %s", got)
		}
	})
}

// TestDenied attacks with a call that the policy denies; the control is the
// same call before.
func TestDenied(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "f")
	r := newRig(t, Server{Name: "a", Start: program("new")})
	s := r.client(t, versions[1], nil)
	if text, failed := invoke(t, s, "a__echo", nil); failed || text != "{}" {
		t.Fatalf("control: %q", text)
	}
	r.judge.deny = func(a bawn.Action) bool { return a.Resource == "a/slow" }
	res, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "a__slow", Arguments: map[string]any{"file": file}})
	if err != nil || !res.IsError {
		t.Fatalf("%v %v", res, err)
	}
	for _, want := range []string{"Denied by Bawn", "the test says so", "test.toml:1", "a/slow", "ask your human"} {
		if !strings.Contains(textOf(res), want) {
			t.Errorf("no %q in %q", want, textOf(res))
		}
	}
	d, _ := res.Meta["bawn.dev/denied"].(map[string]any)
	if d["rule"] != "test.toml:1" || d["by"] != "bawn" {
		t.Errorf("meta %v", res.Meta)
	}
	zero, err := New(Options{Servers: []Server{{Name: "a", Start: program("new")}}})
	if err != nil {
		t.Fatal(err)
	}
	defer zero.Close()
	if d := zero.judge(t.Context(), bawn.Action{}, ""); d.Verdict != bawn.Deny {
		t.Error("a gateway without a judge allows")
	}
}

func TestArgumentsAreJudged(t *testing.T) {
	t.Parallel()
	r := newRig(t, Server{Name: "a", Start: program("new"), Means: func(tool string) map[string]string {
		return map[string]map[string]string{"echo": {"path": ArgumentPath, "url": ArgumentHost, "cmd": ArgumentCommand}}[tool]
	}})
	s := r.client(t, versions[0], nil)
	if text, failed := invoke(t, s, "a__echo", map[string]any{"path": []string{"../../etc/passwd", "file:///x%20y"}, "url": "http://example.org/x", "cmd": "ls"}); failed {
		t.Fatal(text)
	}
	want := "tool call a/echo\ncommand exec ls\nfilesystem write ../../etc/passwd\nfilesystem write /x y\nnetwork connect example.org:80"
	if got := r.judge.seen(); got != want {
		t.Errorf("judged:\n%s\nwant:\n%s", got, want)
	}
	if r.judge.actions[1].Dir != "/w" {
		t.Errorf("dir %q", r.judge.actions[1].Dir)
	}
	for _, bad := range []map[string]any{{"path": 7}, {"path": ""}, {"path": map[string]any{"x": 1}}, {"path": "a\x00b"}, {"url": "http://"}, {"path": "file://host/x"}, {"path": []any{1}}} {
		if text, failed := invoke(t, s, "a__echo", bad); !failed || !strings.Contains(text, "Denied by Bawn") {
			t.Errorf("%v: %q", bad, text)
		}
	}
	r.judge.deny = func(a bawn.Action) bool { return a.Kind == bawn.Filesystem }
	if text, failed := invoke(t, s, "a__echo", map[string]any{"path": "/etc/shadow"}); !failed || !strings.Contains(text, "/etc/shadow") {
		t.Errorf("got %q", text)
	}
}

// TestArgumentsInOtherLetters attacks what arguments mean by names that some
// readers, Go's among them, take for others.
func TestArgumentsInOtherLetters(t *testing.T) {
	t.Parallel()
	r := newRig(t, Server{Name: "a", Start: program("new"), Means: func(tool string) map[string]string {
		return map[string]map[string]string{"echo": {"path": ArgumentPath, "disk": ArgumentPath, "From": ArgumentPath, "from": ArgumentPath, "none": ""}}[tool]
	}})
	r.judge.deny = func(a bawn.Action) bool { return a.Resource == "/w/.env" }
	s := r.client(t, versions[0], nil)
	for name, tt := range map[string]struct {
		tool string
		args map[string]any
		want string // in the refusal; "" for none
	}{
		"control: by its name":           {"echo", map[string]any{"path": "/w/.env"}, "/w/.env"},
		"control: something else":        {"echo", map[string]any{"path": "/w/x", "paths": "/w/.env"}, ""},
		"control: of another tool":       {"pid", map[string]any{"PATH": "/w/.env"}, ""},
		"control: two that mean one":     {"echo", map[string]any{"From": "/w/x"}, ""},
		"control: one of no meaning":     {"echo", map[string]any{"NONE": "/w/.env"}, ""},
		"capitals":                       {"echo", map[string]any{"PATH": "/w/.env"}, `"PATH" is "path"`},
		"both":                           {"echo", map[string]any{"path": "/w/x", "PATH": "/w/.env"}, `"PATH" is "path"`},
		"the long s":                     {"echo", map[string]any{"di\u017fk": "/w/.env"}, `is "disk"`},
		"the Kelvin sign":                {"echo", map[string]any{"dis\u212a": "/w/.env"}, `is "disk"`},
		"two of one meaning":             {"echo", map[string]any{"From": "/w/x", "from": "/w/x"}, `"From" and "from"`},
		"two in a tool of which nothing": {"pid", map[string]any{"x": 1, "X": 2}, `"X" and "x"`},
	} {
		text, failed := invoke(t, s, "a__"+tt.tool, tt.args)
		if failed != (tt.want != "") || failed && (!strings.Contains(text, tt.want) || !strings.Contains(text, "Denied by Bawn")) {
			t.Errorf("%s: %v %q", name, failed, text)
		}
	}
}

func TestResultsAreCleanAndMarked(t *testing.T) {
	t.Parallel()
	r := newRig(t, Server{Name: "a", Start: program("new"), Limits: Limits{Result: 10_000}})
	s := r.client(t, versions[1], nil)
	res, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "a__nasty"})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := textOf(res), `a\x1b[2Jb\u202ec\U000e0041d password=[redacted]`+"\nnext"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if res.Meta[Untrusted] != "a" || res.Meta["bawn.dev/denied"] != nil || res.Meta["anthropic/x"] != nil {
		t.Errorf("meta %v", res.Meta)
	}
	if text, failed := invoke(t, s, "a__big", map[string]any{"n": 9000}); failed || len(text) != 9000 {
		t.Errorf("control: %d bytes", len(text))
	}
	if text, _ := invoke(t, s, "a__big", map[string]any{"n": 3_000_000}); len(text) > 11_000 || !strings.Contains(text, "3000000 bytes") {
		t.Errorf("%d bytes: %q", len(text), text[len(text)-100:])
	}
	res, err = s.CallTool(t.Context(), &mcp.CallToolParams{Name: "a__structured", Arguments: map[string]any{"n": 10}})
	if got, _ := res.StructuredContent.(map[string]any); err != nil || got["token"] != "password=[redacted]" {
		t.Errorf("got %v %v", res.StructuredContent, err)
	}
	if text, failed := invoke(t, s, "a__structured", map[string]any{"n": 20_000}); !failed || !strings.Contains(text, "left out") {
		t.Errorf("got %q", text)
	}
	if text, failed := invoke(t, s, "a__fails", nil); !failed || strings.Contains(text, "\x1b") || !strings.Contains(text, "way") {
		t.Errorf("got %q", text)
	}
}

func TestPromptsAndResources(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, version, server string) {
		r := newRig(t, Server{Name: "a", Start: program(server)})
		s := r.client(t, version, nil)
		l, err := s.ListPrompts(t.Context(), nil)
		if err != nil || len(l.Prompts) != 1 || l.Prompts[0].Name != "a__hello" {
			t.Fatalf("%v %v", l, err)
		}
		p, err := s.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "a__hello", Arguments: map[string]string{"who": "ann"}})
		if err != nil || p.Messages[0].Content.(*mcp.TextContent).Text != "hello ann" || p.Meta[Untrusted] != "a" {
			t.Errorf("%v %v", p, err)
		}
		res, err := s.ListResources(t.Context(), nil)
		if err != nil || len(res.Resources) != 1 || res.Resources[0].URI != "bawn:a/file:///a" {
			t.Fatalf("%v %v", res, err)
		}
		for uri, want := range map[string]string{"bawn:a/file:///a": "text of file:///a", "bawn:a/note:///n": "text of note:///n"} {
			got, err := s.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
			if err != nil || got.Contents[0].Text != want || got.Contents[0].URI != uri {
				t.Errorf("%s: %v %v", uri, got, err)
			}
		}
		r.judge.deny = func(a bawn.Action) bool { return a.Resource == "a/@resource" }
		if _, err := s.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "bawn:a/file:///a"}); err == nil || !strings.Contains(err.Error(), "Denied by Bawn") {
			t.Errorf("got %v", err)
		}
	})
}

func TestQuestionsAreCarriedOn(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, version, server string) {
		r := newRig(t, Server{Name: "a", Start: program(server)})
		var asked string
		c := &mcp.ClientOptions{
			ElicitationHandler: func(_ context.Context, q *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
				asked = q.Params.Message
				return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": "ann"}}, nil
			},
			CreateMessageHandler: func(_ context.Context, q *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
				if q.Params.IncludeContext != "none" {
					t.Errorf("the server gets the context %q", q.Params.IncludeContext)
				}
				return &mcp.CreateMessageResult{Model: "m", Role: "assistant", Content: &mcp.TextContent{Text: "4"}}, nil
			},
		}
		client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, c)
		client.AddRoots(&mcp.Root{URI: "file:///w"})
		s := r.connect(t, client, version)
		for tool, want := range map[string]string{"a__ask": "accept ann", "a__sample": "4", "a__roots": "file:///w"} {
			if text, failed := invoke(t, s, tool, nil); failed || text != want {
				t.Errorf("%s: got %q, want %q", tool, text, want)
			}
		}
		if !strings.HasPrefix(asked, `The MCP server "a" asks (not Bawn`) || strings.Contains(asked, "\u202e") {
			t.Errorf("asked %q", asked)
		}
		r.judge.deny = func(a bawn.Action) bool { return a.Resource == "a/@sampling" }
		if text, failed := invoke(t, s, "a__sample", nil); !failed || !strings.Contains(text, "Denied by Bawn") {
			t.Errorf("got %q", text)
		}
		if text, failed := invoke(t, s, "a__ask", nil); failed {
			t.Errorf("control: %q", text)
		}
	})
}

// TestNobodyIsAskedThere has a client that can't be asked.
func TestNobodyIsAskedThere(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, version, server string) {
		r := newRig(t, Server{Name: "a", Start: program(server)})
		s := r.client(t, version, &mcp.ClientOptions{Capabilities: &mcp.ClientCapabilities{}})
		for _, tool := range []string{"a__ask", "a__sample", "a__roots"} {
			if text, failed := invoke(t, s, tool, nil); !failed {
				t.Errorf("%s: %q", tool, text)
			}
		}
		if text, failed := invoke(t, s, "a__echo", nil); failed {
			t.Errorf("control: %q", text)
		}
	})
}

// TestAnswersAreForTheirCall says a call again that is not the one that waits.
func TestAnswersAreForTheirCall(t *testing.T) {
	t.Parallel()
	r := newRig(t, Server{Name: "a", Start: program("new")})
	s := r.client(t, versions[1], &mcp.ClientOptions{
		MultiRoundTrip: &mcp.MultiRoundTripOptions{Disabled: true}, Capabilities: &mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapabilities{}},
	})
	begin := func() *mcp.CallToolResult {
		res, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "a__ask"})
		if err != nil || res.InputRequests == nil {
			t.Fatalf("%v %v", res, err)
		}
		return res
	}
	yes := mcp.InputResponseMap{questionKey: &mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": "x"}}}
	first := begin()
	for name, p := range map[string]*mcp.CallToolParams{
		"another tool":      {Name: "a__echo", RequestState: first.RequestState, InputResponses: yes},
		"other arguments":   {Name: "a__ask", Arguments: map[string]any{"x": 1}, RequestState: first.RequestState, InputResponses: yes},
		"a state of no one": {Name: "a__ask", RequestState: "guess", InputResponses: yes},
	} {
		if res, err := s.CallTool(t.Context(), p); err != nil || !res.IsError || !strings.Contains(textOf(res), "no such call") {
			t.Errorf("%s: %v %v", name, res, err)
		}
	}
	p := &mcp.CallToolParams{Name: "a__ask", RequestState: first.RequestState, InputResponses: yes}
	if res, err := s.CallTool(t.Context(), p); err != nil || textOf(res) != "accept x" {
		t.Errorf("control: %v %v", res, err)
	}
	if res, err := s.CallTool(t.Context(), p); err != nil || !res.IsError {
		t.Errorf("the answer counts twice: %v %v", res, err)
	}
	second := begin()
	if res, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "a__ask", RequestState: second.RequestState}); err != nil || !strings.Contains(textOf(res), "no answer") {
		t.Errorf("no answer: %v %v", res, err)
	}
}

func TestProgressAndCancellation(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, version, server string) {
		r := newRig(t, Server{Name: "a", Start: program(server)})
		told := make(chan *mcp.ProgressNotificationParams, 8)
		s := r.client(t, version, &mcp.ClientOptions{ProgressNotificationHandler: func(_ context.Context, n *mcp.ProgressNotificationClientRequest) { told <- n.Params }})
		p := &mcp.CallToolParams{Name: "a__progress"}
		p.SetProgressToken("mine")
		if res, err := s.CallTool(t.Context(), p); err != nil || textOf(res) != "done" {
			t.Fatalf("%v %v", res, err)
		}
		if n := testenv.Receive(t, "the progress", told); n.ProgressToken != "mine" || n.Progress != 1 || n.Message != `half\x1b` {
			t.Errorf("told %+v", n)
		}
		file := filepath.Join(t.TempDir(), "cancelled")
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			_, err := s.CallTool(ctx, &mcp.CallToolParams{Name: "a__slow", Arguments: map[string]any{"file": file}})
			ended <- err
		}()
		testenv.Until(t, "the call at the server", func() bool { _, err := os.Stat(file + ".begun"); return err == nil })
		cancel()
		if err := testenv.Receive(t, "the end of the call", ended); err == nil {
			t.Error("the call was not given up")
		}
		testenv.Until(t, "the server hears that the call was given up", func() bool { _, err := os.Stat(file); return err == nil })
	})
}
