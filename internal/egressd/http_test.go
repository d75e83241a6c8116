package egressd

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/egress/git"
	"github.com/bawn-dev/bawn/internal/egress/mitm"
	"github.com/bawn-dev/bawn/internal/egress/ssh"
)

func request(method, path string, readings ...string) mitm.Request {
	return mitm.Request{Method: method, Scheme: "https", Host: "api.test", Port: 443, Path: path, Readings: append([]string{path}, readings...), Query: "token=hunter2"}
}

// A request is allowed only if it is with each reading of its path, in
// whatever order these come.
func TestStrictestReading(t *testing.T) {
	s, box := begin(t, config(t, bawn.Egress{HTTP: []string{"api.test GET /open/**"}}))
	r := newRequests(s)
	for _, tt := range []struct {
		req  mitm.Request
		want bawn.Verdict
	}{
		{request("GET", "/open/a"), bawn.Allow},
		{request("GET", "/open/a", "/open/b"), bawn.Allow},
		{request("DELETE", "/open/a"), bawn.Deny},
		{request("GET", "/shut"), bawn.Deny},
		{request("GET", "/open/a", "/shut"), bawn.Deny},
		{request("GET", "/shut", "/open/a"), bawn.Deny},
		{request("GET", "/open/a", "/shut", "/open/b"), bawn.Deny},
	} {
		told := len(box.denials())
		d := r.decide(t.Context(), tt.req)
		if d.Verdict != tt.want {
			t.Errorf("%s %q: %+v; want %v", tt.req.Method, tt.req.Readings, d, tt.want)
		}
		if new := len(box.denials()) - told; new != map[bool]int{true: 1}[d.Verdict == bawn.Deny] {
			t.Errorf("%s %q: told of %d refusals", tt.req.Method, tt.req.Readings, new)
		}
	}
	if d, err := s.decideRequest(t.Context(), s.action("x"), mitm.Request{}, nil); d.Verdict == bawn.Allow || err != nil {
		t.Errorf("a request that can't be read: %+v, %v", d, err)
	}
	for _, e := range recorded(t, s) {
		if strings.Contains(e.Resource, "hunter2") || strings.Contains(e.Resource, "?") || len(e.Args) != 1 {
			t.Errorf("recorded %+v", e)
		}
	}
}

// Bodies are looked through for other methods where the entries do not permit
// them all, with each reading.
func TestLimited(t *testing.T) {
	s, _ := begin(t, config(t, bawn.Egress{HTTP: []string{"api.test GET,POST /some/**", "api.test POST /all/**", "api.test * /all/**"}, Hosts: []string{"open.test"}}))
	limited := newRequests(s).server.Limited
	for _, tt := range []struct {
		req  mitm.Request
		want bool
	}{
		{request("POST", "/some/a"), true},
		{request("POST", "/all/a"), false},
		{request("POST", "/all/a", "/some/a"), true},
		{request("POST", "/some/a", "/all/a"), true},
		{mitm.Request{Method: "POST", Host: "open.test", Port: 443, Readings: []string{"/some/a"}}, false},
		{mitm.Request{Method: "POST", Host: "api.test", Port: 8443, Readings: []string{"/some/a"}}, false},
	} {
		if got := limited(tt.req); got != tt.want {
			t.Errorf("%+v: %v, want %v", tt.req, got, tt.want)
		}
	}
}

// Requests to a host that nobody has rules for are the connection's matter.
func TestNotOpened(t *testing.T) {
	s, box := begin(t, config(t, bawn.Egress{HTTP: []string{"other.test GET /"}}))
	if d := newRequests(s).decide(t.Context(), request("GET", "/x")); d.Verdict != bawn.Allow || len(recorded(t, s)) != 0 || len(box.denials()) != 0 {
		t.Errorf("got %+v", d)
	}
}

func TestResource(t *testing.T) {
	for want, req := range map[string]mitm.Request{
		"https://api.test/a":         {Scheme: "https", Host: "api.test", Port: 443},
		"http://api.test/a":          {Scheme: "http", Host: "api.test", Port: 80},
		"http://api.test:443/a":      {Scheme: "http", Host: "api.test", Port: 443},
		"https://api.test:8443/a":    {Scheme: "https", Host: "api.test", Port: 8443},
		"https://[2001:db8::1]/a":    {Scheme: "https", Host: "2001:db8::1", Port: 443},
		"https://[2001:db8::1]:99/a": {Scheme: "https", Host: "2001:db8::1", Port: 99},
	} {
		req.Query, req.Header = "secret=1", map[string][]string{"Authorization": {"Basic c2VjcmV0"}}
		if got := resource(req, "/a"); got != want {
			t.Errorf("got %q; want %q", got, want)
		}
	}
}

// What is recorded of requests that were sent, refused or have failed, and what
// of it the human is told.
func TestDone(t *testing.T) {
	s, box := begin(t, config(t, bawn.Egress{HTTP: []string{"api.test GET /**"}}))
	r := newRequests(s)
	allowed := bawn.Decision{Verdict: bawn.Allow, Rule: "isolation:http:x"}
	addr := netip.MustParseAddrPort("192.0.2.1:443")
	r.done(request("GET", "/sent"), mitm.Result{Status: 200, In: 5, Out: 7, Secrets: []string{"b", "a"}, Addr: addr, Decision: allowed})
	r.done(request("GET", "/denied"), mitm.Result{Status: 403, Decision: bawn.Denied("no", "rule"), Err: &mitm.Refusal{Status: 403, Rule: "denied"}}) // the guard's
	r.done(request("GET", "/host"), mitm.Result{Status: 421, Err: &mitm.Refusal{Status: 421, Rule: "host", Reason: "another host"}})
	r.done(request("GET", "/failed"), mitm.Result{Status: 502, Decision: allowed, Err: errors.New("no route")})
	r.done(mitm.Request{Method: "GET", Scheme: "https", Host: "api.test", Port: 443, Path: "/raw", Query: "q"}, mitm.Result{Status: 400, Err: &mitm.Refusal{Status: 400, Rule: "path"}})
	var got []string
	for _, e := range recorded(t, s) {
		got = append(got, strings.Join([]string{e.Resource, e.Resolved.String(), e.Rule, e.Reason, e.Details["status"], e.Details["lent"], e.Details["address"]}, "|"))
	}
	want := []string{
		"https://api.test/sent|allow|isolation:http:x||200|a b|192.0.2.1:443",
		"https://api.test/host|deny|builtin:egress-host|another host|421||",
		"https://api.test/failed|allow|isolation:http:x|no route|502||",
		"https://api.test/raw|deny|builtin:egress-path||400||",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	var told []string
	for _, d := range box.denials() {
		told = append(told, d.Resource+"|"+d.Rule)
	}
	if want := []string{"https://api.test/host|builtin:egress-host", "https://api.test/raw|builtin:egress-path"}; !slices.Equal(told, want) {
		t.Errorf("told %q, want %q", told, want)
	}
}

const commit = "1111111111111111111111111111111111111111"

// Git's operations are decided by its entries, over SSH as over HTTP.
func TestGit(t *testing.T) {
	s, box := begin(t, config(t, bawn.Egress{Git: []string{"git.test fetch team/*", "git.test push team/app refs/heads/agent/*"}}))
	zero := strings.Repeat("0", 40)
	push := func(repo string, u ...git.Update) git.Operation {
		return git.Operation{Kind: git.Push, Repo: repo, Updates: u, Complete: true}
	}
	create := func(ref string) git.Update { return git.Update{Old: zero, New: commit, Ref: ref} }
	for _, tt := range []struct {
		name string
		op   git.Operation
		want bool
	}{
		{"fetch", git.Operation{Kind: git.Fetch, Repo: "team/lib"}, true},
		{"fetch of another", git.Operation{Kind: git.Fetch, Repo: "other/lib"}, false},
		{"discovery", git.Operation{Kind: git.Push, Repo: "team/app", Discovery: true}, true},
		{"discovery elsewhere", git.Operation{Kind: git.Push, Repo: "team/lib", Discovery: true}, false},
		{"push", push("team/app", create("refs/heads/agent/x")), true},
		{"push to another ref", push("team/app", create("refs/heads/main")), false},
		{"push with another ref", push("team/app", create("refs/heads/agent/x"), create("refs/heads/main")), false},
		{"push elsewhere", push("team/lib", create("refs/heads/agent/x")), false},
		{"delete", push("team/app", git.Update{Old: commit, New: zero, Ref: "refs/heads/agent/x"}), false},
		{"force", push("team/app", git.Update{Old: commit, New: strings.Repeat("2", 40), Ref: "refs/heads/agent/x"}), false},
		{"push, half read", git.Operation{Kind: git.Push, Repo: "team/app", Updates: []git.Update{create("refs/heads/agent/x")}}, false},
		{"nothing", git.Operation{}, false},
	} {
		told := len(box.denials())
		err := s.permitSSH(t.Context(), ssh.Request{Host: "git.test", Port: 22, Operation: tt.op})
		if (err == nil) != tt.want || (len(box.denials()) > told) == tt.want {
			t.Errorf("%s: %v, told %v; want %v", tt.name, err, box.denials()[told:], tt.want)
		}
	}
	d := s.checkGit(context.Background(), "https://git.test/team/app.git", git.Operation{Kind: git.Fetch, Repo: "team/app"}, errors.New("can't be read"), s.gitRules("git.test", 443))
	if d.Verdict != bawn.Deny || d.Reason != "can't be read" {
		t.Errorf("what can't be read: %+v", d)
	}
	if err := s.usedKey(ssh.Use{Host: "git.test", Port: 2222, User: "git", Fingerprint: "SHA256:x"}); err != nil {
		t.Error(err)
	}
	events := recorded(t, s)
	last := events[len(events)-1]
	if last.Operation != "sign" || last.Resource != "ssh://git.test:2222" || last.Details["key"] != "SHA256:x" {
		t.Errorf("recorded %+v", last)
	}
	if err := s.log.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.usedKey(ssh.Use{Host: "git.test"}); err == nil {
		t.Error("a key may be used although that can't be recorded")
	}
	if err := s.permitSSH(t.Context(), ssh.Request{Host: "git.test", Port: 22, Operation: git.Operation{Kind: git.Fetch, Repo: "team/lib"}}); err == nil {
		t.Error("a fetch is permitted although it can't be recorded")
	}
}

// Over SSH entries are about a user and a place; a denial says what an entry
// would name. HTTP knows neither.
func TestGitPlaces(t *testing.T) {
	s, box := begin(t, config(t, bawn.Egress{Git: []string{"git.test fetch team/*", "me@git.test fetch /srv/git/*"}}))
	for _, tt := range []struct {
		user, repo string
		rooted     bool
		want       string // the remedy, or "" for what is permitted
	}{
		{"git", "team/app", false, ""},
		{"git", "team/app", true, ""},
		{"me", "srv/git/app", true, ""},
		{"me", "srv/git/app", false, `"me@git.test fetch srv/git/app"`},
		{"git", "srv/git/app", true, `"git.test fetch /srv/git/app"`},
		{"root", "team/app", false, `"root@git.test fetch team/app"`},
		{"root", "srv/git/app", true, `"root@git.test fetch /srv/git/app"`},
	} {
		req := ssh.Request{Host: "git.test", Port: 22, User: tt.user, Operation: git.Operation{Kind: git.Fetch, User: tt.user, Repo: tt.repo, Rooted: tt.rooted}}
		req.Operation = s.ssh.server.Named(req)
		told := len(box.denials())
		err := s.permitSSH(t.Context(), req)
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(box.denials()[told].Remedy, tt.want) {
			t.Errorf("%+v: %v", tt, err)
		}
	}
	for repo, want := range map[string]bool{"team/app": true, "srv/git/app": false} {
		if ok, why := git.Allow(git.Operation{Kind: git.Fetch, Repo: repo}, s.gitRules("git.test", 443)); ok != want {
			t.Errorf("%s over HTTP: %v, %s", repo, ok, why)
		}
	}
}

// The users and the places of a server are other repositories: the log and the
// question to a human, with the answer that is kept, tell them apart. What says
// so comes last, and the resource is for all the same one.
func TestPlacesAreRecorded(t *testing.T) {
	s, _ := begin(t, config(t, bawn.Egress{Git: []string{"git.test push srv/x refs/heads/*", "git.test fetch /srv/x", "alice@git.test push /srv/x refs/heads/*", "alice@git.test fetch srv/x"}}))
	var judged []string
	next := s.guard.Decider
	s.within = nil
	s.guard.Decider = deciderFunc(func(ctx context.Context, a bawn.Action) (bawn.Decision, error) {
		judged = append(judged, strings.Join(a.Args, " "))
		return next.Decide(ctx, a)
	})
	update := git.Update{Old: strings.Repeat("0", 40), New: commit, Ref: "refs/heads/x"}
	push := git.Operation{Kind: git.Push, Updates: []git.Update{update}, Complete: true}
	for _, tt := range []struct {
		user, want string
		rooted     bool
		op         git.Operation
	}{
		{"git", "fetch", false, git.Operation{Kind: git.Fetch}},
		{"git", "fetch path=/srv/x", true, git.Operation{Kind: git.Fetch}},
		{"alice", "fetch user=alice", false, git.Operation{Kind: git.Fetch}},
		{"alice", "fetch user=alice path=/srv/x", true, git.Operation{Kind: git.Fetch}},
		{"alice", "push user=alice path=/srv/x", true, git.Operation{Kind: git.Push, Discovery: true}},
		{"git", "push refs/heads/x", false, push},
		{"alice", "push refs/heads/x user=alice path=/srv/x", true, push},
	} {
		judged = nil
		tt.op.User, tt.op.Repo, tt.op.Rooted = tt.user, "srv/x", tt.rooted
		if err := s.permitSSH(t.Context(), ssh.Request{Host: "git.test", Port: 22, User: tt.user, Operation: tt.op}); err != nil {
			t.Errorf("%s: %v", tt.want, err)
		}
		events := recorded(t, s)
		last := events[len(events)-1]
		if got := strings.Join(last.Args, " "); got != tt.want || last.Resource != "ssh://git.test/srv/x.git" {
			t.Errorf("recorded %q of %q; want %q", got, last.Resource, tt.want)
		}
		want := tt.want
		if tt.op.Discovery {
			want = strings.Replace(want, "push", "fetch", 1)
		}
		if len(judged) != 1 || judged[0] != want {
			t.Errorf("judged %q; want %q", judged, want)
		}
	}
}

// What a host answers with a credential of its own is refused, whatever the
// entries permit.
func TestNoTokenOverSSH(t *testing.T) {
	s, _ := begin(t, config(t, bawn.Egress{Git: []string{"forge.test push **/** refs/**"}}))
	req := ssh.Request{Host: "forge.test", Port: 22, User: "git", Operation: git.Operation{Kind: git.Fetch, Repo: "team/app"}}
	if err := s.permitSSH(t.Context(), req); err != nil {
		t.Fatalf("control: a fetch: %v", err)
	}
	req.Operation.LFS = true
	if err := s.permitSSH(t.Context(), req); err == nil || !strings.Contains(err.Error(), "token") {
		t.Errorf("git-lfs-authenticate: %v; want a refusal", err)
	}
}

// A remedy names what would help.
func TestRemedies(t *testing.T) {
	s, _ := begin(t, config(t, bawn.Egress{HTTP: []string{"api.test GET /x"}}))
	r := newRequests(s)
	for rule, want := range map[string]string{
		"isolation:http": `--http "api.test GET /y"`, "isolation:git:x": `--git "api.test fetch"`,
	} {
		if got := r.remedy(request("GET", "/y"), bawn.Decision{Rule: rule, Source: bawn.SessionSource}); !strings.Contains(got, want) {
			t.Errorf("%s: %q; want %q", rule, got, want)
		}
	}
	if got := r.remedy(request("GET", "/y"), bawn.Decision{Rule: "no-api", Source: bawn.Managed}); !strings.Contains(got, "policy show") {
		t.Errorf("a managed rule: %q", got)
	}
}
