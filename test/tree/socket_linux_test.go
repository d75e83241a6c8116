package tree_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn"
	sessions "github.com/bawn-dev/bawn/internal/session"
	"github.com/bawn-dev/bawn/internal/testenv/testhome"
)

// TestFlagsOfNoGuest: what is Bawn's own or the human's alone is refused, in
// every spelling.
func TestFlagsOfNoGuest(t *testing.T) {
	t.Parallel()
	r := newAccount(t)
	for _, flags := range []string{
		"--detach", "-d", "--attachable", "--split", "--split=false", "--split-workspace ro",
		"--model 80", "--detach-keys none", "-qd", "--net none -d",
	} {
		got := r.sh(t, []string{"--net", "none"}, fmt.Sprintf("%s run %s -- echo yes", filepath.Join(r.Bin, "bawn"), flags))
		if got.Code == 0 || got.Out != "" || !strings.Contains(got.Err, "builtin:child") {
			t.Errorf("%s: %+v", flags, got)
		}
	}
	plan := r.sh(t, []string{"--net", "none"}, filepath.Join(r.Bin, "bawn")+" run --plan --json -- true")
	if strings.Contains(plan.Out, r.Home+"/.ssh/id") {
		t.Errorf("a plan tells what is hidden: %s", plan.Out)
	}
	for _, line := range []string{"run --rw", "run -- ''", "run --", "run -p -- true", "run -p70000 -- true", "run --nonesuch -- true"} {
		if got := r.sh(t, []string{"--net", "none"}, filepath.Join(r.Bin, "bawn")+" "+line); got.Code == 0 {
			t.Errorf("%s: %+v", line, got)
		}
	}
	// What stands behind "--" is the command's, whatever it looks like.
	if got := r.sh(t, []string{"--net", "none"}, filepath.Join(r.Bin, "bawn")+" run -- echo --child --rw /etc"); got.Out != "--child --rw /etc\n" {
		t.Errorf("%+v", got)
	}
}

// TestSpecByHand: what Bawn's processes hand to each other is of no use to others.
func TestSpecByHand(t *testing.T) {
	t.Parallel()
	r := newAccount(t)
	for what, line := range map[string]string{
		"no descriptor":   "bawn launch 3<&-",
		"another one":     "bawn launch 3</dev/null",
		"words of no use": "bawn launch 3<<'X'\n{\"Argv\":1}\nX\n",
	} {
		if got := r.Run(t, "/bin/sh", "-c", line); got.Code != 2 || got.Out != "" {
			t.Errorf("a human, %s: %+v", what, got)
		}
	}
	spec := sessions.Spec{Argv: sessions.Words{"cat", r.Home + "/.ssh/id"}}
	forge := func(name string) {
		text, err := spec.Encode()
		check(t, errors.Join(err, os.WriteFile(filepath.Join(r.Work, name), text, 0o600)))
	}
	forge("own")
	none := "none"
	spec.Net = &none
	spec.Parent = &sessions.Parent{
		Session: bawn.Session{ID: "x", Provider: "native", Isolation: bawn.Isolation{Workspace: "/"}}, Depth: 1, Dir: "/", Environ: os.Environ(),
		Places: []bawn.Mount{{Path: "/", Access: bawn.ReadWrite}},
	}
	forge("child")
	for _, line := range []string{"bawn launch 3<own", "bawn launch 3<child", "unset BAWN_SESSION; bawn launch 3<own", "unset BAWN_SESSION; bawn launch 3<child"} {
		if got := r.sh(t, []string{"--net", "none"}, line); got.Code == 0 || strings.Contains(got.Out, key) {
			t.Errorf("a guest, %s: %+v", line, got)
		}
	}
	// Control: the spec is a good one, outside.
	if got := r.Run(t, "/bin/sh", "-c", "cd "+r.Work+" && exec bawn launch 3<own"); got.Code == 0 || strings.Contains(got.Err, "is for bawn itself") {
		t.Errorf("control: %+v", got)
	}
}

// TestHowMany: sessions of one tree are counted, as deep as it goes.
func TestHowMany(t *testing.T) {
	t.Parallel()
	r := newAccount(t)
	none := []string{"--net", "none"}
	deep := []string{"echo", "yes"}
	for range 5 {
		deep = r.bawn(nil, deep...)
	}
	if got := r.Run(t, r.bawn(none, deep[3:]...)...); got.Out != "yes\n" {
		t.Errorf("control: four below each other: %+v", got)
	}
	if got := r.Run(t, r.bawn(none, deep...)...); got.Code == 0 || !strings.Contains(got.Err, "4 deep") {
		t.Errorf("five below each other: %+v", got)
	}
	one := "{ bawn run -q -- sh -c 'echo yes; echo x >>answers; while ! test -e end; do sleep 0.1; done' || echo x >>answers; } &"
	all := func(n int) string { // once so many have begun or been refused
		return fmt.Sprintf("for i in $(seq 600); do test $(cat answers 2>/dev/null | wc -l) -ge %d && break; sleep 0.1; done; touch end; wait", n)
	}
	many := "for i in 1 2 3 4 5 6 7 8 9 10; do " + one + " done; " + all(10)
	if got := r.sh(t, none, many); strings.Count(got.Out, "yes") != 8 || strings.Count(got.Err, `"rule":"builtin:child"`) != 2 {
		t.Errorf("ten beside each other: %+v", got)
	}
	check(t, errors.Join(os.Remove(r.Work+"/end"), os.Remove(r.Work+"/answers")))
	// The four are there before the first of the twenty, and until the last of them.
	each := "echo x >>four; for i in $(seq 600); do test $(cat four | wc -l) -ge 4 && break; sleep 0.1; done; " +
		"for i in 1 2 3 4 5; do " + one + " done; while ! test -e end; do sleep 0.1; done; wait"
	tree := "for i in 1 2 3 4; do bawn run -q -- sh -c \"" + strings.NewReplacer(`"`, `\"`, "$", `\$`).Replace(each) + "\" & done; " + all(20)
	if got := r.sh(t, none, tree); strings.Count(got.Out, "yes") != 12 || !strings.Contains(got.Err, "16 others below") {
		t.Errorf("four with five each: %+v", got)
	}
}

// TestEnvironment: nothing of a guest's environment reaches the bawn outside,
// and only what its session passes reaches its child.
func TestEnvironment(t *testing.T) {
	t.Parallel()
	r := newAccount(t)
	r.put(t, "evil/bawn/config.toml", "[isolation]\nrw = [\""+r.other+"\"]\n")
	env := fmt.Sprintf("env HOME=%[1]s/evil XDG_CONFIG_HOME=%[1]s/evil XDG_STATE_HOME=%[1]s/state XDG_CACHE_HOME=%[1]s/cache XDG_RUNTIME_DIR=%[1]s/run PATH=%[1]s/evil:$PATH BAWN_X=evil LD_PRELOAD=/evil.so LANG=evil ", r.Work)
	run := r.start(t, r.bawn([]string{"--net", "none"}, "/bin/sh", "-c", env+filepath.Join(r.Bin, "bawn")+" run -- sh -c 'env; "+attempt("touch "+r.other+"/made")+"; touch up; while ! test -e end; do sleep 0.1; done'")...)
	testhome.Until(t, patience/2, "the child", func() bool { return exists(r.Work + "/up") })
	for _, s := range r.sessions(t) {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", s.PID))
		if err != nil || strings.Contains(string(text), "evil") || !strings.Contains(string(text), "HOME="+r.Home+"\x00") {
			t.Errorf("%v: the environment of the bawn of %+v: %q", err, s, text)
		}
	}
	check(t, os.WriteFile(r.Work+"/end", nil, 0o600))
	got := run()
	said(t, "the guest's own configuration", got, false)
	if !strings.Contains(got.Out, "LANG=evil") || strings.Contains(got.Out, "BAWN_X") || strings.Contains(got.Out, "LD_PRELOAD=") {
		t.Errorf("the environment of the child: %s", got.Out)
	}
	for _, dir := range []string{"state", "cache", "run"} {
		if exists(filepath.Join(r.Work, dir)) {
			t.Errorf("bawn outside has made %s where the guest says", dir)
		}
	}
}
