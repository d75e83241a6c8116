package undo_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn/internal/testenv"
	"github.com/bawn-dev/bawn/internal/testenv/testhome"
)

// A form is one way to start a session whose effect is looked at.
type form struct {
	name  string
	flags []string
	bare  bool // the workspace is no repository
	needs []string
	keeps bool // the workspace can't be changed at all
}

// forms are the ways in which dangerous lines run: modes, further writable places,
// directories without git, containers.
var forms = []form{
	{name: "normal"},
	{name: "permissive", flags: []string{"--mode", "permissive"}},
	{name: "plan", flags: []string{"--mode", "plan"}, keeps: true},
	{name: "more places", flags: []string{"--rw", "extra"}},
	{name: "no repository", bare: true},
	{name: "containers", flags: []string{"--docker"}, needs: []string{"docker"}},
}

// home is what the human has besides the project.
const home = `
set -e
mkdir -p ~/.ssh ~/.config/app ~/.local/bin ~/other/src ~/extra/deep
echo export A=b >~/.bashrc; echo key >~/.ssh/id_ed25519; chmod 600 ~/.ssh/id_ed25519; echo c >~/.config/app/config
printf '#!/bin/sh\n' >~/.local/bin/tool; chmod 755 ~/.local/bin/tool; ln -s ~/other/src ~/link
cd ~/other; git init -q .; echo x >src/x; git add .; git commit -qm x; cp -r ~/other/.git ~/other/copy
echo e >~/extra/deep/e
`

// A stage is a human's home in which lines run in one form.
type stage struct {
	*account
	form
	inside, outside string // what it was like before
}

func newStage(t *testing.T, f form) *stage {
	t.Helper()
	r := newAccount(t, f.needs...)
	r.must(t, "bash", "-c", home)
	if f.bare {
		testhome.Check(t, os.RemoveAll(filepath.Join(r.Work, ".git")))
	}
	s := &stage{account: r, form: f}
	s.form.flags = slices.Clone(f.flags)
	if i := slices.Index(s.form.flags, "extra"); i >= 0 {
		s.form.flags[i] = filepath.Join(r.Home, "extra")
	}
	s.must(t, append(s.session(), "true")...) // makes the places of private caches
	s.inside, s.outside = s.covered(t), s.rest(t)
	return s
}

// covered is what a checkpoint has: the workspace and each writable place.
func (s *stage) covered(t *testing.T) string {
	t.Helper()
	if s.bare {
		return again(strings.Join(append(files(t, s.Work), files(t, filepath.Join(s.Home, "extra"))...), "\n"))
	}
	return again(s.state(t) + "\n" + strings.Join(files(t, filepath.Join(s.Home, "extra")), "\n"))
}

// again leaves out what programs make again, which no checkpoint has.
func again(state string) string {
	lines := strings.Split(state, "\n")
	return strings.Join(slices.DeleteFunc(lines, func(l string) bool {
		return strings.Contains(l, "node_modules") || strings.Contains(l, ".venv") || strings.Contains(l, "__pycache__") || strings.Contains(l, "target/")
	}), "\n")
}

// rest is all else of the human's, without what is Bawn's own.
func (s *stage) rest(t *testing.T) string {
	t.Helper()
	var list []string
	entries, err := os.ReadDir(s.Home)
	testhome.Check(t, err)
	for _, e := range entries {
		at := filepath.Join(s.Home, e.Name())
		if e.Name() == "run" || e.Name() == "extra" || e.Name() == ".cache" || strings.HasPrefix(s.Work+"/", at+"/") {
			continue
		}
		info, err := e.Info()
		testhome.Check(t, err)
		text, _ := os.ReadFile(at) // of a file
		list = append(list, fmt.Sprintf("%s %v %q", e.Name(), info.Mode(), text))
		if e.Name() == ".local" { // its state has Bawn's own, some of it sealed
			at = filepath.Join(at, "bin")
		}
		if e.IsDir() {
			list = append(list, files(t, at)...)
		}
	}
	return strings.Join(list, "\n")
}

// session is how a session of the form is started.
func (s *stage) session() []string {
	return append(append([]string{"bawn", "run", "-q", "--net", "none", "--timeout", "20s"}, s.flags...), "--")
}

// try runs a line in a session, looks outside, takes back what it did, and reports
// whether all is as it was.
func (s *stage) try(t *testing.T, line string) bool {
	t.Helper()
	got := s.Run(t, append(s.session(), "timeout", "-k", "1", "5", "bash", "-c", line)...)
	ok := true
	if now := s.rest(t); now != s.outside {
		ok = false
		t.Errorf("%q in a session (%s) has changed outside: %s\n%+v", line, s.name, difference(s.outside, now), got)
	}
	now := s.covered(t)
	if s.keeps && now != s.inside {
		ok = false
		t.Errorf("%q in a session (%s) has changed the workspace: %s", line, s.name, difference(s.inside, now))
	}
	if now == s.inside {
		return ok
	}
	undo := s.Run(t, "bawn", "undo", "--yes")
	if now = s.covered(t); now != s.inside {
		ok = false
		t.Errorf("%q in a session (%s): after undo there is left: %s\n%+v\n%+v", line, s.name, difference(s.inside, now), got, undo)
	}
	return ok
}

// dangerous are the lines of the policy's corpus but those that use up a machine, and
// those that no argument can hold.
func dangerous(t *testing.T) (lines []string) {
	t.Helper()
	text, err := os.ReadFile("../../internal/policy/testdata/corpus/dangerous.tsv")
	testhome.Check(t, err)
	decode := strings.NewReplacer("␤", "\n", "␍", "\r", "␉", "\t", "␛", "\x1b", "␈", "\b")
	for line := range strings.Lines(string(text)) {
		f := strings.Split(strings.TrimRight(line, "\n"), "\t")
		if len(f) > 1 && f[1] != "resource-exhaustion" && !strings.Contains(f[0], "␀") {
			lines = append(lines, decode.Replace(f[0]))
		}
	}
	if len(lines) < 1000 {
		t.Fatalf("%d lines; want a thousand", len(lines))
	}
	return lines
}

// TestDangerousByEffect runs the dangerous lines for real. Nothing outside of the session
// changes, and an undo gives back every byte that a checkpoint covers. Each line runs in
// one of the forms; the representative takes one line in fifty.
func TestDangerousByEffect(t *testing.T) {
	testenv.ByUser(t)
	lines := dangerous(t)
	step := testenv.Some(1, 50)
	for n, f := range forms {
		t.Run(f.name, func(t *testing.T) {
			if len(f.needs) > 0 {
				testenv.Whole(t)
			}
			t.Parallel()
			testenv.Need(t, f.needs...)
			s := newStage(t, f)
			for i := n * step; i < len(lines); i += len(forms) * step {
				if !s.try(t, lines[i]) {
					s = newStage(t, f)
				}
			}
		})
	}
}

// TestEffectIsSeen is the control: what lines do where nothing holds them is seen, outside
// and inside.
func TestEffectIsSeen(t *testing.T) {
	testenv.ByUser(t)
	s := newStage(t, forms[0])
	for _, line := range []string{"echo evil >>~/.bashrc", "rm -rf ~/other/src", "chmod 644 ~/.ssh/id_ed25519", "ln -s /etc ~/planted"} {
		before := s.rest(t)
		if s.Run(t, "bash", "-c", line); s.rest(t) == before {
			t.Errorf("%q is not seen outside", line)
		}
	}
	for _, line := range []string{"rm f1", "echo x >>f2", "git update-ref -d refs/heads/fix", "rm -rf ~/extra/deep"} {
		before := s.covered(t)
		if got := s.Run(t, "bash", "-c", line); s.covered(t) == before {
			t.Errorf("%q is not seen inside: %+v", line, got)
		}
	}
}
