package git_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bawn-dev/bawn/internal/egress/git"
	"github.com/bawn-dev/bawn/internal/testenv"
)

// agentRules are what a session gets that may push its own branches.
var agentRules = []git.Rule{
	{Repo: "bawn-dev/*"},
	{Push: true, Repo: "bawn-dev/app", Ref: "refs/heads/agent/**"},
	{Push: true, Repo: "bawn-dev/app", Ref: "refs/tags/agent-*"},
}

// A forge is git-http-backend with bare repositories, behind the inspector.
type forge struct {
	t     *testing.T
	root  string // of the bare repositories
	url   string
	rules []git.Rule // nil: the control, nothing is judged
	in    git.Inspector

	forgets atomic.Bool // what was pushed before

	mu  sync.Mutex
	ops []git.Operation
	no  []string // reasons
}

// newForge serves bawn-dev/app and bawn-dev/lib, both with one commit on main,
// and secret/app.
func newForge(t *testing.T, rules []git.Rule, format string) *forge {
	t.Helper()
	testenv.Need(t, "git")
	f := &forge{t: t, root: t.TempDir(), rules: rules, in: git.Inspector{Dir: t.TempDir(), Graph: &git.Graph{}}}
	for _, name := range []string{"bawn-dev/app", "bawn-dev/lib", "secret/app"} {
		copyDir(t, filepath.Join(f.root, name+".git"), bare(t, format))
	}
	server := httptest.NewServer(f.handler())
	t.Cleanup(server.Close)
	f.url = server.URL
	return f
}

var bares struct {
	sync.Mutex
	dir map[string]string // by object format
}

// bare returns a repository to copy, which is made once.
func bare(t *testing.T, format string) string {
	t.Helper()
	bares.Lock()
	defer bares.Unlock()
	if dir := bares.dir[format]; dir != "" {
		return dir
	}
	dir := filepath.Join(templates, format)
	seed := t.TempDir()
	run(t, seed, "init", "--quiet", "--bare", "--initial-branch=main", "--object-format="+format, dir)
	for _, config := range []string{"http.receivepack", "receive.advertisePushOptions", "receive.advertiseAtomic"} {
		run(t, dir, "config", config, "true")
	}
	run(t, seed, "init", "--quiet", "--initial-branch=main", "--object-format="+format)
	commit(t, seed, "first")
	run(t, seed, "push", "--quiet", dir, "main", "main:refs/heads/agent/old", "main:refs/heads/stable")
	bares.dir[format] = dir
	return dir
}

// templates is where the repositories to copy are.
var templates string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "bawn-git-test-*")
	if err != nil {
		panic(err)
	}
	templates, bares.dir = dir, map[string]string{}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

func (f *forge) handler() http.Handler {
	execPath := strings.TrimSpace(run(f.t, f.root, "--exec-path"))
	backend := &cgi.Handler{
		Path: filepath.Join(execPath, "git-http-backend"),
		Env:  []string{"GIT_PROJECT_ROOT=" + f.root, "GIT_HTTP_EXPORT_ALL=1", "REMOTE_USER=agent"},
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if f.rules != nil && !f.judge(w, r) {
			return
		}
		if r.ContentLength < 0 { // CGI wants a length
			body, err := io.ReadAll(r.Body)
			if err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
			r.Body, r.ContentLength, r.TransferEncoding = io.NopCloser(bytes.NewReader(body)), int64(len(body)), nil
		}
		backend.ServeHTTP(w, r)
	})
}

func (f *forge) judge(w http.ResponseWriter, r *http.Request) bool {
	in := f.in
	if f.forgets.Load() {
		in.Graph = nil
	}
	op, err := in.HTTP(r)
	ok, reason := git.Allow(op, f.rules)
	if err != nil {
		ok, reason = false, err.Error()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ops = append(f.ops, op)
	if !ok {
		f.no = append(f.no, reason)
		http.Error(w, "bawn: "+reason, http.StatusForbidden)
	}
	return ok
}

// refusals returns why requests were refused so far, and forgets it.
func (f *forge) refusals() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	defer func() { f.no = nil }()
	return strings.Join(f.no, "\n")
}

// ref returns where a ref of a repository stands, or "".
func (f *forge) ref(repo, ref string) string {
	out, err := try(f.t, filepath.Join(f.root, repo+".git"), "rev-parse", "--verify", "--quiet", ref)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(out)
}

func (f *forge) clone(repo string, args ...string) string {
	f.t.Helper()
	dir := filepath.Join(f.t.TempDir(), "clone")
	run(f.t, f.root, append(append([]string{"clone", "--quiet"}, args...), f.url+"/"+repo+".git", dir)...)
	return dir
}

// try runs git without the machine's configuration and returns its output.
func try(t *testing.T, dir string, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = dir
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com",
		"GIT_CONFIG_COUNT=2", "GIT_CONFIG_KEY_0=protocol.file.allow", "GIT_CONFIG_VALUE_0=always", "GIT_CONFIG_KEY_1=safe.directory", "GIT_CONFIG_VALUE_1=*",
	}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func run(t *testing.T, dir string, args ...string) string {
	t.Helper()
	out, err := try(t, dir, args...)
	if err != nil {
		t.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return out
}

// commit makes n commits in the repository at dir, each with a file of a few
// kilobytes that changes a little.
func commit(t *testing.T, dir string, messages ...string) {
	t.Helper()
	for _, m := range messages {
		text := strings.Repeat("a line of text\n", 200) + m + "\n"
		if err := os.WriteFile(filepath.Join(dir, "file"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		run(t, dir, "add", "-A")
		run(t, dir, "commit", "--quiet", "-m", m)
	}
}

// TestOrdinaryWork: what an agent does with a repository all day works
// through the inspector, with SHA-1 and SHA-256.
func TestOrdinaryWork(t *testing.T) {
	for _, format := range []string{"sha1", "sha256"} {
		t.Run(format, func(t *testing.T) {
			f := newForge(t, agentRules, format)
			dir := f.clone("bawn-dev/app")
			commit(t, dir, "second")
			run(t, dir, "push", "origin", "HEAD:refs/heads/agent/work")
			commit(t, dir, "third", "fourth")
			run(t, dir, "push", "--atomic", "origin", "HEAD:refs/heads/agent/work", "HEAD:refs/heads/agent/old", "HEAD:refs/tags/agent-1")
			run(t, dir, "push", "origin", "HEAD:refs/heads/agent/--mirror")
			run(t, dir, "push", "origin", "HEAD:refs/heads/agent/work") // up to date
			run(t, dir, "fetch", "--all", "--tags", "--prune")
			run(t, dir, "-c", "protocol.version=0", "fetch", "origin")
			head := strings.TrimSpace(run(t, dir, "rev-parse", "HEAD"))
			for _, ref := range []string{"refs/heads/agent/work", "refs/heads/agent/old", "refs/tags/agent-1", "refs/heads/agent/--mirror"} {
				if got := f.ref("bawn-dev/app", ref); got != head {
					t.Errorf("%s is at %q, want %q", ref, got, head)
				}
			}
			if why := f.refusals(); why != "" {
				t.Errorf("refused: %s", why)
			}
		})
	}
}

// TestLaterPushLeansOnEarlierOne: a push that sends no commit is proven by
// what the same session pushed before, and by nothing without it.
func TestLaterPushLeansOnEarlierOne(t *testing.T) {
	for _, remembers := range []bool{true, false} {
		f := newForge(t, agentRules, "sha1")
		f.forgets.Store(!remembers)
		dir := f.clone("bawn-dev/app")
		commit(t, dir, "second")
		run(t, dir, "push", "origin", "HEAD:refs/heads/agent/work")
		_, err := try(t, dir, "push", "origin", "HEAD:refs/heads/agent/old")
		if (err == nil) != remembers {
			t.Errorf("with memory %v: %v, %s", remembers, err, f.refusals())
		}
	}
}

// TestShallow: a shallow clone may push on top of what it has.
func TestShallow(t *testing.T) {
	f := newForge(t, agentRules, "sha1")
	dir := filepath.Join(t.TempDir(), "clone")
	run(t, f.root, "clone", "--quiet", "--depth=1", "--no-single-branch", f.url+"/bawn-dev/app", dir)
	commit(t, dir, "second")
	run(t, dir, "push", "origin", "HEAD:refs/heads/agent/old")
	if got, want := f.ref("bawn-dev/app", "agent/old"), strings.TrimSpace(run(t, dir, "rev-parse", "HEAD")); got != want {
		t.Errorf("agent/old is at %q, want %q", got, want)
	}
}

// TestLargePush: commits at the end of a pack that does not fit into memory
// are found, and the server gets the whole pack.
func TestLargePush(t *testing.T) {
	f := newForge(t, agentRules, "sha1")
	dir := f.clone("bawn-dev/app")
	writeNoise(t, filepath.Join(dir, "noise"), 3<<20)
	commit(t, dir, "second")
	run(t, dir, "-c", "http.postBuffer=1000", "push", "origin", "HEAD:refs/heads/agent/old")
	run(t, filepath.Join(f.root, "bawn-dev/app.git"), "fsck", "--full", "--strict")
}

// writeNoise writes a file that can't be compressed.
func writeNoise(t *testing.T, name string, size int) {
	t.Helper()
	noise := make([]byte, size)
	for i, x := 0, uint32(1); i < len(noise); i++ {
		x = x*1664525 + 1013904223
		noise[i] = byte(x >> 24)
	}
	if err := os.WriteFile(name, noise, 0o600); err != nil {
		t.Fatal(err)
	}
}

// attacks are pushes by git itself that throw something away, or go where no
// rule leads. Each must change the ref without the inspector.
var attacks = []struct {
	name    string
	args    []string
	changed string // ref that changes without the inspector
	repo    string // "" is bawn-dev/app
	want    string // in the reason
}{
	{"force", []string{"push", "--force", "origin", "rewritten:refs/heads/agent/old"}, "refs/heads/agent/old", "", "force push"},
	{"plus", []string{"push", "origin", "+rewritten:refs/heads/agent/old"}, "refs/heads/agent/old", "", "force push"},
	{"lease", []string{"push", "--force-with-lease", "origin", "rewritten:refs/heads/agent/old"}, "refs/heads/agent/old", "", "force push"},
	{"plus refs", []string{"push", "origin", "work:refs/heads/agent/new", "+rewritten:refs/heads/agent/old"}, "refs/heads/agent/old", "", "force push"},
	{"atomic", []string{"push", "--atomic", "--force", "origin", "work:refs/heads/agent/new", "rewritten:refs/heads/agent/old"}, "refs/heads/agent/old", "", "force push"},
	{"back", []string{"push", "--force", "origin", "before:refs/heads/stable"}, "refs/heads/stable", "", "no git rule"},
	{"delete", []string{"push", "origin", "--delete", "agent/old"}, "refs/heads/agent/old", "", "would delete"},
	{"colon", []string{"push", "origin", ":refs/heads/agent/old"}, "refs/heads/agent/old", "", "would delete"},
	{"main", []string{"push", "origin", "work:refs/heads/main"}, "refs/heads/main", "", `"refs/heads/main"`},
	{"head to main", []string{"push", "origin", "HEAD:refs/heads/main"}, "refs/heads/main", "", `"refs/heads/main"`},
	{"main behind its own", []string{"push", "origin", "work:refs/heads/agent/new", "work:refs/heads/main"}, "refs/heads/main", "", `"refs/heads/main"`},
	{"mirror", []string{"push", "--mirror", "origin"}, "refs/heads/stable", "", "delet"},
	{"prune", []string{"push", "--prune", "origin", "refs/heads/agent/nothing*:refs/heads/agent/*"}, "refs/heads/agent/old", "", "would delete"},
	{"tag", []string{"push", "--force", "origin", "work:refs/tags/agent-1"}, "refs/tags/agent-1", "", "never moved"},
	{"look-alike", []string{"push", "origin", "work:refs/heads/agentx/a"}, "refs/heads/agentx/a", "", "no git rule"},
	{"options", []string{"push", "-o", "merge_request.create", "origin", "work:refs/heads/agent/new"}, "refs/heads/agent/new", "", "push options"},
	{"another repository", []string{"push", "URL/bawn-dev/lib.git", "--force", "work:refs/heads/agent/new"}, "refs/heads/agent/new", "bawn-dev/lib", "pushing to"},
	{"unreadable repository", []string{"fetch", "URL/secret/app.git"}, "", "", "fetching"},
	{"another path", []string{"push", "URL/secret/../bawn-dev/lib.git", "--force", "work:refs/heads/agent/new"}, "", "", ""},
	{"escaped path", []string{"push", "URL/bawn-dev/%6cib.git", "--force", "work:refs/heads/agent/new"}, "refs/heads/agent/new", "bawn-dev/lib", "servers read differently"},
}

// TestAttacks pushes with git itself, with and without the inspector.
func TestAttacks(t *testing.T) {
	for _, tt := range attacks {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if changed, out, _ := attack(t, nil, tt.args, tt.repo, tt.changed); !changed && tt.changed != "" {
				t.Fatalf("control: nothing changed: %s", out)
			}
			changed, out, why := attack(t, agentRules, tt.args, tt.repo, tt.changed)
			if changed || !strings.Contains(why, tt.want) {
				t.Errorf("changed: %v, reason %q, want %q\n%s", changed, why, tt.want, out)
			}
		})
	}
}

// scene makes, once, a repository and a clone of it in which "work" goes on from
// main, "rewritten" does not, and "before" lies behind.
func scene(t *testing.T) (repo, clone string) {
	t.Helper()
	from := bare(t, "sha1")
	bares.Lock()
	defer bares.Unlock()
	repo, clone = filepath.Join(templates, "scene.git"), filepath.Join(templates, "scene")
	if bares.dir["scene"] != "" {
		return repo, clone
	}
	copyDir(t, repo, from)
	run(t, templates, "clone", "--quiet", repo, clone)
	run(t, clone, "branch", "before")
	run(t, clone, "checkout", "--quiet", "-b", "work")
	commit(t, clone, "second")
	run(t, clone, "push", "--quiet", "origin", "work:refs/heads/stable", "before:refs/tags/agent-1")
	run(t, clone, "fetch", "--quiet", "origin")
	run(t, clone, "checkout", "--quiet", "--orphan", "rewritten")
	commit(t, clone, "rewritten")
	run(t, clone, "checkout", "--quiet", "work")
	bares.dir["scene"] = clone
	return repo, clone
}

func copyDir(t *testing.T, to, from string) {
	t.Helper()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
}

// attack runs git in a scene of its own and says whether ref of repo changed.
func attack(t *testing.T, rules []git.Rule, args []string, repo, ref string) (changed bool, out, why string) {
	t.Helper()
	f := newForge(t, rules, "sha1")
	from, clone := scene(t)
	app, dir := filepath.Join(f.root, "bawn-dev/app.git"), filepath.Join(t.TempDir(), "clone")
	if err := os.RemoveAll(app); err != nil {
		t.Fatal(err)
	}
	copyDir(t, app, from)
	copyDir(t, dir, clone)
	run(t, dir, "config", "remote.origin.url", f.url+"/bawn-dev/app.git")
	if repo == "" {
		repo = "bawn-dev/app"
	}
	before := f.ref(repo, ref)
	real := make([]string, len(args))
	for i, a := range args {
		real[i] = strings.Replace(a, "URL", f.url, 1)
	}
	out, err := try(t, dir, real...)
	if err == nil && rules != nil {
		out += "git has succeeded"
		changed = true
	}
	return changed || f.ref(repo, ref) != before, fmt.Sprint(out, err), f.refusals()
}
