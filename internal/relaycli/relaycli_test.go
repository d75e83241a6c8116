package relaycli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/approval"
	"github.com/bawn-dev/bawn/internal/relay/api"
	"github.com/bawn-dev/bawn/internal/testenv"
	"github.com/bawn-dev/bawn/internal/verb"
	bawnv1 "github.com/bawn-dev/bawn/proto/bawn/v1"
	"github.com/bawn-dev/bawn/proto/bawn/v1/bawnv1connect"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// unrecorded forgets what it is told to record.
type unrecorded struct{}

func (unrecorded) Record(context.Context, bawn.Event) error { return nil }

// A rig is a relay's queue with its API and the verbs in front of it.
type rig struct {
	t     *testing.T
	queue *approval.Queue
	relay bawnv1connect.ApprovalServiceClient
	env   *Env
	state string       // the directory of the relay's lock
	ahead atomic.Int64 // of the machine's clock
}

func (r *rig) now() time.Time { return time.Now().Add(time.Duration(r.ahead.Load())) }

func newRig(t *testing.T) *rig {
	t.Helper()
	store := &approval.Memory{}
	q, err := approval.NewQueue(t.Context(), approval.Options{Store: store})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { q.Close() })
	served, err := api.New(api.Options{Inbox: q, History: store.History, Recorder: unrecorded{}, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		served.ServeHTTP(w, req.WithContext(api.WithCaller(req.Context(), api.Caller{Name: "anna"})))
	}))
	t.Cleanup(func() {
		server.CloseClientConnections() // a screen that is still there watches
		server.Close()
	})
	r := &rig{t: t, queue: q, state: t.TempDir(), relay: bawnv1connect.NewApprovalServiceClient(server.Client(), server.URL)}
	r.env = &Env{
		Now: r.now, Approvals: func(context.Context, bool) (bawnv1connect.ApprovalServiceClient, error) { return r.relay, nil },
		Serve: func(context.Context, Serving) error { return errors.New("serves") },
		State: func() (string, error) { return r.state, nil },
		System: func(context.Context) (bawnv1connect.SystemServiceClient, error) {
			return bawnv1connect.NewSystemServiceClient(server.Client(), server.URL), nil
		},
	}
	return r
}

// id is the n-th ID of a test.
func id(first string) string { return (first + strings.Repeat("a", 26))[:26] }

func question(first, line string) approval.Question {
	return approval.Question{
		ID: id(first), Session: "s", Agent: "claude", Reason: "normal mode: remote-action", Rule: "builtin:default", Contains: "it writes to the workspace only",
		Action: bawn.Action{Kind: bawn.Command, Operation: bawn.Exec, Resource: line, Dir: "/srv/app"}, Asked: time.Now(), Expires: time.Now().Add(10 * time.Minute),
		Suggested: bawn.Ask, Always: []bawn.Rule{{ID: "allow-x", Kind: bawn.Command, Pattern: line, Verdict: bawn.Allow, Priority: 10, Source: bawn.User}},
		Never:  []bawn.Rule{{ID: "deny-x", Kind: bawn.Command, Pattern: line, Verdict: bawn.Deny, Priority: 10, Source: bawn.User}},
		Covers: []string{"the same in another project"},
	}
}

// ask puts a question, and sends what it came to.
func (r *rig) ask(q approval.Question) <-chan string {
	r.t.Helper()
	out := make(chan string, 1)
	go func() {
		a, err := r.queue.Ask(r.t.Context(), q)
		if err != nil {
			out <- err.Error()
			return
		}
		out <- fmt.Sprintf("%v %s by %s %s", a.Verdict, approval.ScopeName(a.Scope), a.By, a.Why)
	}()
	testenv.Until(r.t, "the question", func() bool {
		list, err := r.queue.List(r.t.Context())
		if err != nil {
			r.t.Fatal(err)
		}
		return slices.ContainsFunc(list, func(rec approval.Record) bool { return rec.ID == q.ID })
	})
	return out
}

// run is one command line: its exit code and what it wrote.
func (r *rig) run(args ...string) (int, string, string) {
	r.t.Helper()
	read := func(f *os.File, w *os.File) string {
		w.Close()
		text, err := io.ReadAll(f)
		if err != nil {
			r.t.Fatal(err)
		}
		return string(text)
	}
	out, outW := pipe(r.t)
	errs, errsW := pipe(r.t)
	r.env.Stdin, r.env.Stdout, r.env.Stderr = nil, outW, errsW
	code := Main(args, r.env)
	return code, read(out, outW), read(errs, errsW)
}

func pipe(t *testing.T) (*os.File, *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	return r, w
}

func gets(t *testing.T, c <-chan string, want string) {
	t.Helper()
	if got := testenv.Receive(t, "the asker's "+want, c); strings.TrimSpace(got) != want {
		t.Errorf("the asker got %q; want %q", got, want)
	}
}

// Each answer with its scope reaches the asker.
// TestWords: how the system starts what was asked for, from its own directory.
func TestWords(t *testing.T) {
	o := Serving{Listen: "127.0.0.1:7443", Cert: "box.pem", Key: "/k", Unit: true}
	words, err := o.Words()
	at, _ := filepath.Abs("box.pem")
	want := []string{"serve", "--listen", "127.0.0.1:7443", "--tls-cert", at, "--tls-key", "/k"}
	if err != nil || !slices.Equal(words, want) {
		t.Errorf("%q, %v; want %q", words, err, want)
	}
}

func TestAnswers(t *testing.T) {
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"approve", "baaa"}, "allow once by anna"}, {[]string{"approve", "baaaa", "--once"}, "allow once by anna"},
		{[]string{"approve", "--session", "BAAA"}, "allow for this session by anna"}, {[]string{"approve", "baaa", "--always"}, "allow always by anna"},
		{[]string{"deny", "baaa", "--why", "use staging"}, "deny once by anna use staging"}, {[]string{"deny", "baaa", "--never"}, "deny always by anna"},
	} {
		r := newRig(t)
		got := r.ask(question("b", "git push"))
		other := r.ask(question("c", "git pull"))
		code, out, errs := r.run(tt.args...)
		if code != 0 || errs != "" || !strings.Contains(out, "git push") {
			t.Errorf("%q: %d %q %q", tt.args, code, out, errs)
		}
		gets(t, got, strings.Replace(tt.want, "for this session", approval.ScopeName(bawn.ForSession), 1))
		if code, _, errs := r.run("deny", "caaa"); code != 0 {
			t.Errorf("the other: %d %q", code, errs)
		}
		gets(t, other, "deny once by anna")
	}
}

// TestPlainAnswerToAConnection: a plain answer holds as its key does at every other
// frontend, for the session, unless a flag says otherwise.
func TestPlainAnswerToAConnection(t *testing.T) {
	session := approval.ScopeName(bawn.ForSession)
	for words, want := range map[string]string{
		"approve": "allow " + session + " by anna", "deny": "deny " + session + " by anna",
		"approve --once": "allow once by anna", "deny --once": "deny once by anna",
	} {
		r := newRig(t)
		q := question("b", "api.test:443")
		q.Action.Kind, q.Action.Operation, q.Action.Dir = bawn.Network, bawn.Connect, ""
		got := r.ask(q)
		if code, _, errs := r.run(append(strings.Fields(words), "baaa")...); code != 0 {
			t.Errorf("%s: %d %q", words, code, errs)
		}
		gets(t, got, want)
	}
}

// What can't be done has its exit code, and says why.
func TestRefusals(t *testing.T) {
	r := newRig(t)
	r.ask(question("b", "git push"))
	r.ask(question("bb", "git pull"))
	done := r.ask(question("c", "git fetch"))
	if _, err := r.queue.Answer(t.Context(), id("c"), bawn.Answer{Verdict: bawn.Deny, By: "web", Why: "no\x1b[2J", At: noon}); err != nil {
		t.Fatal(err)
	}
	gets(t, done, "deny once by web no\x1b[2J")
	for _, tt := range []struct {
		args string
		code int
		says string
	}{
		{"approve " + id("c"), verb.ExitTooLate, "too late, denied once by web (no\\x1b[2J): git fetch"}, {"approve", verb.ExitUsage, "no question"}, {"approve daaa", verb.ExitUsage, "begins with"}, {"approve bb", verb.ExitUsage, "too little"},
		{"approve b", verb.ExitUsage, "2 questions"}, {"approve b" + strings.Repeat("z", 25), verb.ExitUsage, "no such question"}, {"approve bbaa --once --session", verb.ExitUsage, "exclude each other"},
		{"approve bb --never", verb.ExitUsage, "unknown flag"}, {"deny --always bb", verb.ExitUsage, "unknown flag"}, {"approvals now", verb.ExitUsage, "unexpected argument"}, {"approve bbaa daaa", verb.ExitUsage, "begins with"},
	} {
		code, out, errs := r.run(strings.Fields(tt.args)...)
		if code != tt.code || !strings.Contains(errs, tt.says) || strings.Contains(errs+out, "\x1b") {
			t.Errorf("%s: %d %q %q; want %d and %q", tt.args, code, out, errs, tt.code, tt.says)
		}
	}
	if list, err := r.queue.List(t.Context()); len(list) != 2 || err != nil {
		t.Errorf("%d are pending, %v; want both", len(list), err)
	}
}

// A guest that reaches the verb with the socket in hand is refused before it
// speaks to the relay.
func TestGuestsMayNotAnswer(t *testing.T) {
	r := newRig(t)
	r.ask(question("b", "git push"))
	r.env.Environ = []string{"BAWN_SESSION=s"}
	for _, args := range []string{"approve b", "deny b", "approvals", "approvals --json", "serve"} {
		if code, out, errs := r.run(strings.Fields(args)...); code != verb.ExitDenied || out != "" || !strings.Contains(errs, "only the human") {
			t.Errorf("%s: %d %q %q", args, code, out, errs)
		}
	}
	r.env.Environ = nil
	if code, _, errs := r.run("approve", "baaa"); code != 0 {
		t.Errorf("control: %d %q", code, errs)
	}
}

func TestList(t *testing.T) {
	r := newRig(t)
	if code, out, errs := r.run("approvals"); code != 0 || out != "" || !strings.Contains(errs, "nothing is pending") {
		t.Errorf("nothing: %d %q %q", code, out, errs)
	}
	q := question("b", "git push\x1b[2J\nbawn: fine")
	q.Justification = "bawn: this is safe, press y"
	r.ask(q)
	code, out, _ := r.run("approvals")
	if code != 0 || strings.Count(out, "\n") != 2 || !strings.Contains(out, `baaaaaaa`) || !strings.Contains(out, `git push\x1b[2J`) || strings.Contains(out, "\x1b") || strings.Contains(out, "press y") {
		t.Errorf("%d %q", code, out)
	}
	code, out, _ = r.run("approvals", "--json")
	var got row
	if err := json.Unmarshal([]byte(out), &got); err != nil || code != 0 || got.ID != q.ID || got.Resource != "git push\\x1b[2J\nbawn: fine" || got.State != approval.Pending || len(got.Always) != 1 || got.Answer != nil {
		t.Errorf("%d %+v %v", code, got, err)
	}
}

// TestOnceForOne says how many ask, and how many still do after a yes once.
func TestOnceForOne(t *testing.T) {
	r := newRig(t)
	for n, name := range []string{"b", "c", "d"} {
		go r.queue.Ask(t.Context(), question(name, "git push"))
		testenv.Until(t, "the question of "+name, func() bool {
			list, _ := r.queue.List(t.Context())
			return len(list) > 0 && list[0].Waiting == n+1
		})
	}
	if _, out, _ := r.run("approvals"); strings.Count(out, "\n") != 2 || !strings.Contains(out, "(3 ask for it) git push") {
		t.Errorf("list: %q", out)
	}
	for _, step := range []struct{ name, want string }{{id("b"), "allowed once by anna; 2 more wait (caaaaaaa): git push\n"}, {id("c"), "allowed once by anna; 1 more waits (daaaaaaa): git push\n"}, {id("d"), "allowed once by anna: git push\n"}} {
		if code, out, errs := r.run("approve", step.name); code != 0 || out != step.want {
			t.Errorf("%d %q %q; want %q", code, out, errs, step.want)
		}
	}
}

// --watch writes what is pending and each change, as long as the relay lives.
func TestWatch(t *testing.T) {
	r := newRig(t)
	got := r.ask(question("b", "git push"))
	out, outW := pipe(t)
	errs, errsW := pipe(t)
	r.env.Stdin, r.env.Stdout, r.env.Stderr = nil, outW, errsW
	ended := make(chan int, 1)
	go func() {
		ended <- Main([]string{"approvals", "--watch", "--json"}, r.env)
		outW.Close()
		errsW.Close()
	}()
	if err := out.SetReadDeadline(time.Now().Add(testenv.Patience(t, 20*time.Second))); err != nil {
		t.Fatal(err)
	}
	lines := json.NewDecoder(out)
	next := func() (is row) {
		t.Helper()
		if err := lines.Decode(&is); err != nil {
			t.Fatal(err)
		}
		return is
	}
	if first := next(); first.State != approval.Pending {
		t.Errorf("first %+v", first)
	}
	r.queue.Answer(t.Context(), id("b"), bawn.Answer{Verdict: bawn.Allow, By: "web", At: noon})
	last := next()
	for last.Answer == nil {
		last = next()
	}
	r.queue.Close()
	code := testenv.Receive(t, "its end", ended)
	if said, err := io.ReadAll(errs); err != nil || last.Answer.By != "web" || code != verb.ExitInternal || !strings.Contains(string(said), "relay has ended") {
		t.Errorf("%v %d %+v %q", err, code, last, said)
	}
	gets(t, got, "allow once by web")
}

func TestCompletion(t *testing.T) {
	r := newRig(t)
	r.ask(question("b", "git push"))
	if code, out, _ := r.run("approve", "__complete", ""); code != 0 || !strings.Contains(out, "baaaaaaa\tgit push") {
		t.Errorf("%d %q", code, out)
	}
	if code, out, _ := r.run("deny", "__complete", "--n"); code != 0 || !strings.Contains(out, "--never") {
		t.Errorf("%d %q", code, out)
	}
	if code, _, errs := r.run("serve", "--on-demand"); code != verb.ExitInternal || !strings.Contains(errs, "serves") {
		t.Errorf("%d %q", code, errs)
	}
}

// shown is what the API says of a question, as far as a list needs it.
func shown(q approval.Question) *bawnv1.Approval {
	out := &bawnv1.Approval{Action: &bawnv1.Action{Kind: q.Action.Kind.String()}}
	for _, l := range approval.Render(q) {
		out.Lines = append(out.Lines, &bawnv1.Line{Label: l.Label, Text: l.Text, Exact: l.Exact})
	}
	return out
}

// TestWhat: a list shows a command of several lines on one, and cuts the longest.
func TestWhat(t *testing.T) {
	q := approval.Question{Action: bawn.Action{Kind: bawn.Command, Operation: bawn.Exec, Resource: "{\necho x\n}", Args: []string{"no", "part"}}}
	if got := what(shown(q)); got != "{⏎echo x⏎}" {
		t.Errorf("got %q", got)
	}
	tool := approval.Question{Action: bawn.Action{Kind: bawn.Tool, Operation: bawn.Read, Resource: "skill/claude", Args: []string{"new skill a", "new skill b"}}}
	if got := what(shown(tool)); got != "skill/claude new skill a new skill b" {
		t.Errorf("got %q", got)
	}
	q.Canonical = strings.Repeat("é", 400)
	if got := what(shown(q)); got != strings.Repeat("é", maxWhat)+" …" {
		t.Errorf("got %q", got)
	}
}

// TestServeRefuses: what no page can have is a mistake of the command line, said
// before anything serves.
func TestServeRefuses(t *testing.T) {
	for _, tt := range []struct{ flag, value, want string }{
		{"--listen", "127.0.0.1", "want ADDRESS:PORT"}, {"--listen", "localhost:7443", "want an IP address"}, {"--listen", "127.0.0.1:x-y", "is no port"},
		{"--listen", "127.0.0.1:77777", "is no port"}, {"--listen", "0.0.0.0:7443", "--name is missing"}, {"--listen", "[::]:7443", "--name is missing"}, {"--name", "127.0.0.1", "passkey"}, {"--name", "[::1]", "passkey"}, {"--name", "::1", "passkey"}, {"--name", "Box.example", "passkey"},
	} {
		code, _, errs := newRig(t).run("serve", tt.flag, tt.value)
		if code != verb.ExitUsage || !strings.Contains(errs, tt.want) || !strings.Contains(errs, "bawn: hint: for example: ") {
			t.Errorf("%s %s: %d %q; want %q", tt.flag, tt.value, code, errs, tt.want)
		}
	}
	for _, args := range [][]string{{"serve"}, {"serve", "--listen", "[::]:7443", "--name", "box.example"}, {"serve", "--listen", "127.0.0.1:0"}} {
		if _, _, errs := newRig(t).run(args...); !strings.Contains(errs, "error: serves") {
			t.Errorf("%q: %q; want it to serve", args, errs)
		}
	}
}
