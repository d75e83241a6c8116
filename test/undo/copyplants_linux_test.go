package undo_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn/internal/sandbox/sandboxtest/plant"
	"github.com/bawn-dev/bawn/internal/testenv"
	"github.com/bawn-dev/bawn/internal/testenv/engine"
	"github.com/bawn-dev/bawn/internal/testenv/testhome"
)

// shapes are what the host would obey beside names: links, named pipes, bits of a mode,
// repositories; and names of the table that come by a detour. Each leaves its last word.
var shapes = map[string]string{
	"link":          "ln -s /etc/passwd link",
	"up/link":       "mkdir -p up; ln -s ../../victim up/link",
	"through":       "ln -s up/.. through",
	"pipe":          "mkfifo pipe",
	"suid":          "cp /bin/true suid; chmod 4755 suid",
	"bare/HEAD":     "mkdir -p bare/objects bare/refs; echo ref: refs/heads/main >bare/HEAD; printf '[core]\\n\\tfsmonitor = touch pwned\\n' >bare/config",
	"clone/.git":    "git init -q clone; git -C clone config core.fsmonitor 'touch pwned'",
	"moved/.envrc":  "mkdir -p moved; echo x >moved/plain; mv moved/plain moved/.envrc",
	"dir/.vscode/f": "mkdir -p dir/plain; echo x >dir/plain/f; mv dir/plain dir/.vscode",
	"hard/.envrc":   "mkdir -p hard; echo x >hard/plain; ln hard/plain hard/.envrc",
	"late/.envrc":   "python3 -c 'import os; os.mkdir(\"late\"); os.open(\"late/x\", os.O_CREAT|os.O_WRONLY); os.rename(\"late/x\", \"late/.envrc\")'",
	"CASE/.ENVRC":   "mkdir -p CASE; echo x >CASE/.ENVRC",
	"kept/.envrc":   "echo evil >>kept/.envrc",
	"gone/.envrc":   "rm gone/.envrc",
	"swap/.envrc":   "rm -r swap; ln -s dir swap; rm swap; mkdir swap; echo x >swap/.envrc",
}

// written is a script that writes a file under a name.
func written(name string) string {
	return fmt.Sprintf("mkdir -p '%s' && echo x >'%s'\n", filepath.Dir(name), name)
}

// An onCopy has sessions work on copy p.
type onCopy struct {
	*account
	run   string // the words before a command
	image bool   // the guest has a container's image, with the workspace in its own place

	hostKernel bool // and not gVisor's
}

// place is where the guest has a workspace.
func (r *onCopy) place(dir string) string {
	if r.image {
		return "/workspace"
	}
	return dir
}

// onCopies has fn run once for each provider that has copies. Native is the representative.
func onCopies(t *testing.T, fn func(t *testing.T, r *onCopy)) {
	for _, provider := range []string{"native", "bwrap", "docker", "gvisor"} {
		t.Run(provider, func(t *testing.T) {
			if provider != "native" {
				testenv.Whole(t)
			}
			if !slices.Contains(providers[provider], "root") {
				testenv.ByUser(t)
			}
			r := newAccount(t, append([]string{"userns", "landlock", "seccomp", "notify"}, providers[provider]...)...)
			r.configure(t, provider, engine.Work)
			fn(t, &onCopy{r, "bawn run -q --copy --name p --net none --provider " + provider + " -- ", provider == "docker", provider != "gvisor"})
		})
	}
}

// TestCopyPlants has a guest make, on a copy, all that the host would execute or obey: the
// guest can, and none of it is there after a human has applied the copy. The control is the
// same without a session.
func TestCopyPlants(t *testing.T) { onCopies(t, copyPlants) }

func copyPlants(t *testing.T, r *onCopy) {
	script := "umask 022\n"
	var all []string
	for _, name := range plant.Names() {
		script += written(name)
		all = append(all, name)
		if strings.Contains(name, ".vscode") || strings.Contains(name, ".envrc") {
			script += written("deep/er/" + name)
			all = append(all, "deep/er/"+name)
		}
	}
	for name, make := range shapes {
		script += make + " || echo failed: " + name + "\n"
		all = append(all, name)
	}
	script += written("harmless")
	look := "for f in"
	for _, name := range all {
		look += " '" + name + "'"
	}
	look += "; do test -e \"$f\" -o -L \"$f\" && echo \"there $f\"; done; true"
	ws, bare := filepath.Join(r.Home, "plants"), filepath.Join(r.Home, "bare")
	for _, dir := range []string{ws, bare} {
		r.must(t, "sh", "-c", "mkdir -p $0/kept $0/gone $0/swap && cd $0 && for d in kept gone swap; do echo mine >$d/.envrc; done", dir)
	}
	made := func(out string) (list []string) {
		for line := range strings.Lines(out) {
			if name, ok := strings.CutPrefix(line, "there "); ok {
				list = append(list, strings.TrimSpace(name))
			}
		}
		return list
	}
	control := made(r.must(t, "sh", "-c", "cd \"$0\"; "+script+look, bare))
	if want := len(all) - 1; len(control) != want { // one is removed
		t.Fatalf("control: %d of %d are there", len(control), want)
	}
	before := files(t, ws)
	out := r.must(t, "sh", "-c", `cd "$0" && exec `+r.run+`sh -c "$1"`, ws, script+look)
	if inside := made(out); !slices.Equal(inside, control) {
		t.Errorf("the guest has made %d of %d:\n%s", len(inside), len(control), out)
	}
	if after := files(t, ws); !slices.Equal(after, before) {
		t.Errorf("before anything is applied: %q", after)
	}
	held := r.must(t, "sh", "-c", `cd "$0" && bawn apply p --yes`, ws)
	if n := strings.Count(held, "  held "); n < 40 || strings.Index(held, "  add ") < strings.LastIndex(held, "  held ") {
		t.Errorf("want what is held back first:\n%s", held)
	}
	after := slices.DeleteFunc(files(t, ws), func(line string) bool { // what may come: directories, and files under plain names
		name, rest, _ := strings.Cut(line, " ")
		return name == "suid" && strings.HasPrefix(rest, "100755") || // without its bit
			!slices.Contains(all, name) && (strings.HasPrefix(rest, "40755") || slices.Contains([]string{"harmless", "hard/plain", "clone/config"}, name))
	})
	want := slices.DeleteFunc(slices.Clone(before), func(line string) bool { return strings.Contains(line, " 40755") })
	if !slices.Equal(after, want) {
		t.Errorf("applied: %q\nwant, beside what is harmless: %q", after, want)
	}
	if _, err := os.Stat(filepath.Join(ws, "harmless")); err != nil {
		t.Errorf("control: %v", err)
	}
}

// TestCopyGitPlants leaves on a copy in git directories what git on the host would execute
// or obey. Neither the session nor applying its copy brings any of it to the host. The
// control is the same without a session.
func TestCopyGitPlants(t *testing.T) {
	testenv.Need(t, "python3")
	onCopies(t, copyGitPlants)
}

func copyGitPlants(t *testing.T, r *onCopy) {
	kinds := plant.Sample(8)
	place := func(name string) *plant.Workspace {
		dir := filepath.Join(r.Home, name)
		testhome.Check(t, os.Mkdir(dir, 0o755))
		return plant.New(t, dir, kinds)
	}
	control := place("control")
	control.Plant(t)
	if got := control.Struck(t); len(got) != len(kinds) {
		t.Errorf("control: %d of %d plants: %q", len(got), len(kinds), got)
	}
	w := place("copy")
	w.Note()
	out := r.must(t, "sh", "-c", `cd "$0" && `+r.run+`sh -c "$1" && bawn apply p --yes`, w.Dir, w.Plants(r.place(w.Dir))+"echo harmless >harmless")
	t.Log(out)
	if _, err := os.Stat(filepath.Join(w.Dir, "harmless")); err != nil {
		t.Errorf("control: %v", err)
	}
	if got := w.Changed(); len(got) > 0 {
		t.Errorf("git directories of the host changed: %q", got)
	}
	if got := w.Struck(t); len(got) > 0 {
		t.Errorf("executed or obeyed: %q", got)
	}
}
