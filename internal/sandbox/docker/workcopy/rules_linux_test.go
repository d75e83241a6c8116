package workcopy

import (
	"archive/tar"
	"bytes"
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn/internal/sandbox/layout"
	"github.com/bawn-dev/bawn/internal/testenv"
)

// comesBack has a shell be the host's side of a workspace, then the guest's of a
// copy, and brings that back, what the host has done meanwhile being there; at last the host's works in it. It returns what was
// told, and whether a program of the guest's has run.
func comesBack(t *testing.T, before, guest, meanwhile, victim string, hidden ...string) (left []string, ran bool) {
	t.Helper()
	around := t.TempDir()
	ws, theirs, pwned := filepath.Join(around, "ws"), filepath.Join(around, "theirs"), filepath.Join(around, "pwned")
	sh := func(dir, text string) {
		c := exec.Command("sh", "-c", "umask 022\n"+text)
		c.Dir, c.Env = dir, []string{"PATH=" + os.Getenv("PATH"), "OUT=" + pwned, "HOME=" + around, "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b"}
		if out, err := c.CombinedOutput(); err != nil {
			t.Logf("%q: %v\n%s", text, err, out)
		}
	}
	sh(around, "mkdir ws; cd ws; "+before+"\ncp -a . ../theirs")
	sh(theirs, "plant() { printf '#!/bin/sh\\ntouch $OUT\\n' >$1; chmod 755 $1; }\nevil() { plant x.sh; printf '[core]\\n\\tbare = false\\n\\tworktree = .\\n\\tfsmonitor = %s/x.sh\\n[alias]\\n\\tx = !touch $OUT\\n' "+ws+" >$1; }\n"+guest)
	const prefix = "workspace"
	session := Session{Plan: &layout.Plan{Protected: []string{"/workspace"}}, Place: "/workspace", Hidden: hidden}
	limits := Limits{Bytes: 1 << 24, Entries: 1000}
	pack := func(dir string, hidden []string) (Manifest, *bytes.Buffer, []Left) {
		root, err := os.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer root.Close()
		var b bytes.Buffer
		to := tar.NewWriter(&b)
		packer := &Packer{To: to, Prefix: prefix, Limits: limits, Rules: Rules{Hidden: hidden}}
		m, untaken, err := packer.Pack(root)
		if err != nil {
			t.Fatal(err)
		}
		if err := to.Close(); err != nil {
			t.Fatal(err)
		}
		return m, &b, untaken
	}
	taken, _, untaken := pack(ws, hidden)
	_, b, _ := pack(theirs, nil)
	stream := bytes.NewReader(b.Bytes())
	got, err := Read(stream, stream.Size(), prefix, limits)
	if err != nil {
		t.Fatal(err)
	}
	sh(ws, meanwhile)
	root, err := os.Open(ws)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	steps, list := Compare(taken, got, session.Rules(root, taken, untaken, got))
	_, more := Apply(root, stream, steps)
	for _, l := range append(list, more...) {
		left = append(left, l.Path+": "+l.Why)
	}
	sh(ws, victim)
	_, err = os.Stat(pwned)
	return left, err == nil
}

// TestRepositoriesThatComeBack: git finds nothing to execute or obey in what a guest
// has made of a directory, whatever it is called. In the control the guest has made
// it of one that is no git directory, and the host makes one of it.
func TestRepositoriesThatComeBack(t *testing.T) {
	testenv.Need(t, "git")
	const parts, use = `mkdir -p src/objects src/refs; echo "ref: refs/heads/main" >src/HEAD; `, `cd src && git status; git x`
	const host, push = `git init -q --bare x.git`, `git init -q w && cd w && git commit -q --allow-empty -m one && git push -q ../x.git HEAD:y`
	for name, tt := range map[string]struct {
		before, guest, victim string
		hidden                string
		meanwhile             string
		told                  string // begins what was told; "" in the control
	}{
		"control":                   {"", `mkdir src; evil src/config; mkdir src/hooks src/info; plant src/hooks/x; echo x >src/info/attributes; mkdir src/modules`, parts + use, "", "", ""},
		"a new one":                 {"", parts + `evil src/config`, use, "", "", "src/config: it is protected"},
		"the workspace itself":      {"", `mkdir objects refs; echo "ref: refs/heads/main" >HEAD; evil config`, "git status; git x", "", "", "config: it is protected"},
		"HEAD is a link":            {"", parts + `rm src/HEAD; ln -s refs/heads/main src/HEAD; evil src/config`, use, "", "", "src/config: it is protected"},
		"HEAD alone comes":          {`mkdir -p src/objects/x src/refs; echo >src/refs/x; git config -f src/config alias.x "!touch $OUT"`, `echo "ref: refs/heads/main" >src/HEAD`, use, "", "", "src/HEAD: it is protected"},
		"HEAD is there":             {`mkdir src; echo "ref: refs/heads/main" >src/HEAD`, parts + `evil src/config`, use, "", "", "src/config: it is protected"},
		"refs alone come":           {`mkdir -p src/objects; echo "ref: refs/heads/main" >src/HEAD; git config -f src/config alias.x "!touch $OUT"`, `mkdir src/refs`, use, "", "", "src/refs: it is protected"},
		"HEAD is hidden":            {parts, `rm src/HEAD; evil src/config`, use, "src/HEAD", "", "src/config: it is protected"},
		"commondir":                 {"", `mkdir -p e/objects e/refs src; evil e/config; echo ../e >src/commondir; echo "ref: refs/heads/main" >src/HEAD`, use, "", "", "src/commondir: it is protected"},
		"the host's: config":        {host, `evil x.git/config`, `cd x.git && git x`, "", "", "x.git/config: it is protected"},
		"the host's: a link":        {host, `rm x.git/config; evil c; ln -s ../c x.git/config`, `cd x.git && git x`, "", "", "x.git/config: it is protected"},
		"the host's: a hook":        {host, `plant x.git/hooks/pre-receive`, push, "", "", "x.git/hooks/pre-receive: it is protected"},
		"the host's: hooks a link":  {host + `; rm -r x.git/hooks`, `mkdir h; plant h/pre-receive; ln -s ../h x.git/hooks`, push, "", "", "x.git/hooks: it is protected"},
		"the host's: moved":         {host, `mv x.git src; evil src/config`, use, "", "", "src/config: it is protected"},
		"of a .git file":            {`git init -q --separate-git-dir store .`, `evil store/config`, `git x`, "", "", "store/config: it is protected"},
		"of a .git file: a new one": {"", `mkdir -p e/objects e/refs; echo "ref: refs/heads/main" >e/HEAD; evil e/config; echo "gitdir: e" >.git`, `git x`, "", "", "e/config: it is protected"},
		"made meanwhile":            {"", `mkdir -p x.git/hooks; plant x.git/hooks/pre-receive`, push, "", host, "x.git/hooks/pre-receive: it is protected"},
	} {
		t.Run(name, func(t *testing.T) {
			var hidden []string
			if tt.hidden != "" {
				hidden = []string{tt.hidden}
			}
			left, ran := comesBack(t, cmp.Or(tt.before, "true"), tt.guest, cmp.Or(tt.meanwhile, "true"), tt.victim, hidden...)
			if ran != (tt.told == "") {
				t.Errorf("a program of the guest's has run: %v; left %q", ran, left)
			}
			if tt.told == "" && len(left) > 0 || tt.told != "" && !slices.ContainsFunc(left, func(l string) bool { return strings.HasPrefix(l, tt.told) }) {
				t.Errorf("told %q; want %q", left, tt.told)
			}
		})
	}
}
