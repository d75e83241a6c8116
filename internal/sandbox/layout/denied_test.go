package layout

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/symlink"
)

// list is what a directory of the made-up machine holds.
func (m machine) list(dir string) (all []Listed, err error) {
	for _, e := range m {
		from, _, link := strings.Cut(e, " -> ")
		if p := strings.TrimSuffix(from, "/"); path.Dir(p) == dir && p != dir {
			all = append(all, Listed{Name: path.Base(p), Dir: strings.HasSuffix(e, "/") && !link, Link: link})
		}
	}
	return all, nil
}

// denying is a plan with patterns.
func denying(m machine, list func(string) ([]Listed, error), patterns ...string) (*Plan, error) {
	req := plain("/home/ada/p")
	for _, p := range patterns {
		req.Session.Isolation.Mounts = append(req.Session.Isolation.Mounts, bawn.Mount{Path: p, Access: bawn.Hidden, Why: "--deny"})
	}
	facts := m.facts(1000)
	if list != nil {
		facts.List = list
	}
	return Layout(req, facts)
}

func hiddenIn(p *Plan) (all []string) {
	for _, m := range p.Mounts {
		if m.Why == "--deny" {
			all = append(all, m.Kind+" "+strings.TrimPrefix(m.Target, "/home/ada/p/"))
		}
	}
	return all
}

func TestDeniedPlaces(t *testing.T) {
	m := append(machine{"/home/ada/p/.env", "/home/ada/p/a/", "/home/ada/p/a/.env", "/home/ada/p/a/x.pem", "/home/ada/p/a/keys/", "/home/ada/p/a/keys/.env",
		"/home/ada/p/to -> /home/ada/p/a/x.pem", "/home/ada/p/a/to.key -> /home/ada/p/a/file", "/home/ada/p/a/file", "/home/ada/p/out.pub -> /srv/data"}, laptop...)
	for pattern, want := range map[string]string{
		"/home/ada/p/**/.env":   "[hide-file .env hide-file a/.env hide-file a/keys/.env]",
		"/home/ada/p/*/x.*":     "[hide-file a/x.pem]",
		"/home/ada/p/**/keys":   "[hide-dir a/keys]",
		"/home/ada/p/**/*.key":  "[hide-file a/file]", // where the link leads
		"/home/ada/p/none/**/x": "[]",
	} {
		p, err := denying(m, nil, pattern)
		if err != nil {
			t.Errorf("%s: %v", pattern, err)
			continue
		}
		if got := fmt.Sprint(hiddenIn(p)); got != want || len(p.Denied) != 1 || p.Denied[0] != pattern {
			t.Errorf("%s hides %s and denies %q, want %s", pattern, got, p.Denied, want)
		}
	}
	for pattern, want := range map[string]string{
		"/**/x": "looked through", "/proc/*/environ": "looked through", "/home/ada/p/**/*.pub": "leads to", "/home/*/p": "is given as", "/home/ada/p/.env.{a,b}": "match nothing", "/home/ada/p/[ab]": "match nothing",
	} {
		if _, err := denying(m, nil, pattern); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %q", pattern, err, want)
		}
	}
}

// TestDeniedBounds: a repository that is too large to be looked through is an
// error, which says what to write, and so are more matches than can be covered.
func TestDeniedBounds(t *testing.T) {
	many := func(n int, name string) func(string) ([]Listed, error) {
		return func(dir string) (all []Listed, err error) {
			if dir != "/home/ada/p" {
				return nil, fs.ErrPermission
			}
			for i := range n {
				all = append(all, Listed{Name: fmt.Sprintf(name, i)})
			}
			return all, nil
		}
	}
	for _, tt := range []struct {
		n          int
		name, want string
	}{
		{maxWalked, "f%d", ""}, {maxWalked + 1, "f%d", "names to look through"}, {maxDenied, "%d.env", ""}, {maxDenied + 1, "%d.env", "can be hidden"},
	} {
		_, err := denying(laptop, many(tt.n, tt.name), "/home/ada/p/**/*.env")
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%d of %q: %v; want %q", tt.n, tt.name, err, tt.want)
		}
	}
	failing := func(string) ([]Listed, error) { return nil, errors.New("disk") }
	if _, err := denying(laptop, failing, "/home/ada/p/**/*.env"); err == nil {
		t.Error("a directory that can't be read is taken for an empty one")
	}
}

// TestDeniedNames is what the supervisor says of names.
func TestDeniedNames(t *testing.T) {
	p := NewProtector([]string{"/w"}, nil, nil)
	p.Denied = Patterns([]string{"/w/**/.env", "/w/conf/*.key"})
	for name, want := range map[string]bool{"/w/.env": true, "/w/a/.ENV": true, "/w/.env/x": true, "/w/conf/a.key": true, "/w/conf/a/b.key": false, "/w/a.env": false, "/v/.env": false} {
		for _, op := range []Operation{OpOpen, OpMkdir, OpRenameTo, OpRenameFrom, OpLinkTo, OpLinkFrom, OpSymlink, OpMknod, OpBind} {
			if r, _ := p.Rule(op, name, false); (r == RulingDeny) != want {
				t.Errorf("%d at %s: denied is %v, want %v", op, name, r == RulingDeny, want)
			}
		}
	}
	for _, tt := range []struct {
		from, to string
		want     bool
	}{
		{"/w/a", "/w/b", false}, {"/w/a", "/w/conf", true}, {"/w/conf", "/w/a", false}, {"/v/a", "/w/a", true}, {"/w/a/b", "/w/c", false},
	} {
		if got := p.Brings(tt.from, tt.to); got != tt.want {
			t.Errorf("%s to %s: %v, want %v", tt.from, tt.to, got, tt.want)
		}
	}
}

// TestNamedByLinks is where a link may be a guest's.
func TestNamedByLinks(t *testing.T) {
	m := append(machine{"/home/ada/p/build -> /srv/data", "/home/ada/proj -> /home/ada/p", "/home/ada/alias -> /srv/data", "/home/ada/old/", "/home/ada/old/link -> /srv/data", "/srv/data/sub/"}, laptop...)
	for _, tt := range []struct {
		path   string
		more   []bawn.Mount
		refuse bool
	}{
		{"/home/ada/p/build", nil, true},
		{"/home/ada/p/build/sub", nil, true},
		{"/home/ada/alias", nil, false}, // the human's own, above every place of guests
		{"/home/ada/alias", []bawn.Mount{{Path: "/home/ada/", Access: bawn.ReadOnly, Why: "--ro"}}, false},
		{"/home/ada/old/link", nil, true}, // of an earlier session
		{"/srv/data", nil, false},
	} {
		for _, access := range []bawn.Access{bawn.Hidden, bawn.ReadOnly, bawn.Private, bawn.ReadWrite} {
			req := plain("/home/ada/p")
			req.GuestWrote = func(dir string) bool { return dir == "/home/ada/old" }
			req.Session.Isolation.Mounts = append(append(req.Session.Isolation.Mounts, tt.more...), bawn.Mount{Path: tt.path, Access: access, Why: "--flag"})
			_, err := Layout(req, m.facts(1000))
			var planted *symlink.PlantedError
			if errors.As(err, &planted) != tt.refuse || !tt.refuse && err != nil {
				t.Errorf("%s as %v: %v; want it refused: %v", tt.path, access, err, tt.refuse)
			}
		}
	}
	// What the first look finds is not where the second leads.
	facts := m.facts(1000)
	facts.Follow = func(p string) ([]string, string) { return nil, p }
	req := plain("/home/ada/p")
	req.Session.Isolation.Mounts = append(req.Session.Isolation.Mounts, bawn.Mount{Path: "/home/ada/p/build", Access: bawn.ReadWrite, Why: "--rw"})
	if _, err := Layout(req, facts); err == nil || !strings.Contains(err.Error(), "a moment later") {
		t.Errorf("a link that goes away between two looks: %v", err)
	}
}
