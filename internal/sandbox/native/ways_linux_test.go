package native

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/testenv"
)

// TestLinksToPlacesStay: dotfiles are often links. In a home directory that is
// writable, nothing may be put in the place of a link to what is hidden, nor where
// such a link leads while nothing is there, since programs of the host obey what
// they find behind it. The control is a link to an ordinary place, beside them.
func TestLinksToPlacesStay(t *testing.T) {
	testenv.Need(t, "userns", "notify")
	for name, c := range map[string]struct{ link, to, attack string }{
		"a hidden directory, removed":        {".aws", "dots/aws", `rm "$1" && mkdir "$1" && echo evil >"$1/config"`},
		"a hidden directory, replaced":       {".aws", "dots/aws", `mkdir z && echo evil >z/config && mv -T z "$1"`},
		"a hidden directory, another link":   {".kube", "dots/kube", `ln -s "$PWD" z && mv -T z "$1"`},
		"a hidden file, renamed":             {".netrc", "dots/netrc", `mv "$1" "$1.old" && echo evil >"$1"`},
		"a hidden file behind two links":     {".npmrc", "dots/two", `rm "$2/dots/two" && echo evil >"$2/dots/two"`},
		"nothing yet where it leads":         {".git-credentials", "dots/none", `echo evil >"$2/dots/none"`},
		"the directory on the way is a link": {".config", "dots/config", `rm "$1" && mkdir -p "$1/gh" && echo evil >"$1/gh/hosts.yml"`},
	} {
		t.Run(name, func(t *testing.T) {
			dir, req := home(t, "dots/aws/config", "dots/kube/config", "dots/netrc", "dots/npmrc", "dots/two -> npmrc", "dots/config/gh/hosts.yml", "dots/plain")
			for _, link := range []string{c.link, "plain"} {
				to := c.to
				if link == "plain" {
					to = "dots/plain"
				}
				succeed(t, os.Symlink(to, filepath.Join(dir, link)))
			}
			iso := &req.Session.Isolation
			iso.Mounts = append(iso.Mounts, bawn.Mount{Path: dir, Access: bawn.ReadWrite, Why: "--rw"})
			g := keptGuest(t, req, false)
			said := does(t, g, `rm "$2/plain" && echo mine >"$2/plain" && echo done; cd "$2/work"; `+c.attack+` && echo evil`, filepath.Join(dir, c.link), dir)
			if got, err := os.ReadFile(filepath.Join(dir, "plain")); string(got) != "mine\n" {
				t.Errorf("control: a link to an ordinary place was not replaced: %v; %q", err, said)
			}
			if got, err := os.Readlink(filepath.Join(dir, c.link)); got != c.to {
				t.Errorf("the link leads to %q, %v; want %q; the guest said %q", got, err, c.to, said)
			}
			if got, err := os.Readlink(filepath.Join(dir, "dots/two")); got != "npmrc" {
				t.Errorf("the second link leads to %q, %v; the guest said %q", got, err, said)
			}
			if _, err := os.Lstat(filepath.Join(dir, "dots/none")); err == nil {
				t.Errorf("something was put where a link leads; the guest said %q", said)
			}
		})
	}
}

// TestCredentialsBehindLinks: what a link in a hidden directory leads to is hidden
// too, wherever it lies, the workspace included; what is opened is not.
func TestCredentialsBehindLinks(t *testing.T) {
	testenv.Need(t, "userns", "notify")
	for _, open := range []bool{false, true} {
		dir, req := home(t, ".aws/config")
		cred := filepath.Join(dir, "work", "cred")
		replace(t, cred, "old")
		succeed(t, os.Symlink(cred, filepath.Join(dir, ".aws/credentials")))
		if open {
			req.Open = []string{filepath.Join(dir, ".aws")}
		}
		g := keptGuest(t, req, false)
		said := does(t, g, `exec 2>/dev/null; cat "$1"; echo evil >"$1"; cat "$2/.aws/config"; true`, cred, dir)
		if got, _ := os.ReadFile(cred); !open && (said != "" || string(got) != "old\n") {
			t.Errorf("the guest reads %q and leaves %q", said, got)
		}
		if open && said != "old\nold\n" {
			t.Errorf("control: the guest reads %q of what is opened", said)
		}
	}
}

// does has a guest run a script, and returns what it says.
func does(t *testing.T, g *guest, script string, args ...string) string {
	t.Helper()
	r, w, err := os.Pipe()
	succeed(t, err)
	null, err := os.Open(os.DevNull)
	succeed(t, err)
	defer null.Close()
	proc, err := g.Exec(sandbox.Command{Argv: append([]string{"sh", "-c", script, "sh"}, args...), Stdio: [3]*os.File{null, w, w}})
	w.Close()
	succeed(t, err)
	for range proc.Changes() {
	}
	text, err := io.ReadAll(r)
	succeed(t, err)
	return string(text)
}
