package docker

import (
	"archive/tar"
	"bytes"
	"cmp"
	"encoding/base64"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bawn-dev/bawn/internal/sandbox/docker/workcopy"
	"github.com/bawn-dev/bawn/internal/sandbox/native"
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
	p := &Plan{layout: &layout{guest: "/workspace"}, Inside: &native.Plan{Protected: []string{"/workspace"}}, Remote: &Remote{Hidden: hidden}}
	limits := workcopy.Limits{Bytes: 1 << 24, Entries: 1000}
	pack := func(dir string, hidden []string) (workcopy.Manifest, *bytes.Buffer, []workcopy.Left) {
		root, err := os.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer root.Close()
		var b bytes.Buffer
		to := tar.NewWriter(&b)
		packer := &workcopy.Packer{To: to, Prefix: copyWorkspace, Limits: limits, Rules: workcopy.Rules{Hidden: hidden}}
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
	got, err := workcopy.Read(stream, stream.Size(), copyWorkspace, limits)
	if err != nil {
		t.Fatal(err)
	}
	sh(ws, meanwhile)
	root, err := os.Open(ws)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	a := &away{root: root, taken: taken, untaken: untaken}
	steps, list := workcopy.Compare(taken, got, p.rules(taken, a.alsoHere(got), got))
	_, more := workcopy.Apply(root, stream, steps)
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

// TestDrip: an engine that sends or takes a byte now and then ends soon, though
// something moves all the time. The control sends as little at once.
func TestDrip(t *testing.T) {
	for _, pause := range []time.Duration{0, 20 * time.Millisecond} {
		l, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
		if err != nil {
			t.Fatal(err)
		}
		gone := make(chan struct{})
		srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "/_ping") {
				w.Header().Set("Api-Version", "1.50")
				return
			}
			w.Header().Set("X-Docker-Container-Path-Stat", base64.StdEncoding.EncodeToString([]byte("{}")))
			for range 500 {
				if _, err := w.Write([]byte{0}); err != nil {
					break
				}
				w.(http.Flusher).Flush()
				time.Sleep(pause)
			}
			close(gone)
		})}
		go srv.Serve(l)
		t.Cleanup(func() { srv.Close() })
		e, err := connect("unix://"+l.Addr().String(), Options{})
		if err != nil {
			t.Fatal(err)
		}
		e.pace = pace{idle: time.Second, start: 200 * time.Millisecond, rate: 1000}
		spool, err := os.Create(filepath.Join(t.TempDir(), "spool"))
		if err != nil {
			t.Fatal(err)
		}
		defer spool.Close()
		g := &guest{session: &session{engine: e, plan: &Plan{Remote: &Remote{MaxMB: 1}}, away: &away{copier: "c"}}}
		began := time.Now()
		n, err := g.receive(spool)
		if pause == 0 && (err != nil || n != 500) || pause > 0 && (err == nil || !strings.Contains(err.Error(), "are too few")) {
			t.Errorf("%v between bytes: %d, %v", pause, n, err)
		}
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("%v between bytes: it took %v", pause, took)
		}
		<-gone // it is not read to its end
	}
}

// TestPace: the whole is bounded by the bytes, and a slow one that goes on is fine.
func TestPace(t *testing.T) {
	p := pace{copyIdle, copyStart, copyRate}
	for n, want := range map[int64]time.Duration{0: 5 * time.Minute, 64 << 20: 5*time.Minute + 1024*time.Second, 1 << 40: 5*time.Minute + (1<<24)*time.Second} {
		if got := p.most(n); got != want {
			t.Errorf("%d bytes may take %v; want %v", n, got, want)
		}
	}
}
