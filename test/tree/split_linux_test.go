package tree_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn/internal/testenv"
	"github.com/bawn-dev/bawn/internal/testenv/testhome"
)

// agent runs a command as the agent of a split session.
func (r *account) agent(t *testing.T, flags []string, argv ...string) result {
	t.Helper()
	return r.Run(t, r.bawn(append([]string{"--split", "--env", "OPENAI_API_KEY"}, flags...), argv...)...)
}

// TestNoWayRoundApprovals: what the policy refuses of a command it refuses of a
// session with it, word for word, whatever the words look like in a line.
func TestNoWayRoundApprovals(t *testing.T) {
	t.Parallel()
	r := newAccount(t)
	r.Rule(t, "deny", "command", "touch *")
	r.Rule(t, "allow", "command", "echo *")
	r.Rule(t, "allow", "command", "tool *")
	r.put(t, "tool", "#!/bin/sh\necho no\n")
	if got := r.agent(t, nil, r.bawn([]string{"-q"}, "echo", "yes")...); got.Out != "yes\n" {
		t.Errorf("control: %+v", got)
	}
	for what, argv := range map[string][]string{
		"as it is":     {"touch", "made"},
		"in a shell":   {"sh", "-c", "touch made"},
		"with quotes":  {"sh", "-c", "'touch' made"},
		"as one word":  {"sh", "-c", "echo x; touch made"},
		"behind quote": {"sh", "-c", "echo '\n'; touch made"},
		"by env":       {"env", "touch", "made"},
	} {
		got := r.agent(t, nil, r.bawn([]string{"-q"}, argv...)...)
		if exists(filepath.Join(r.Work, "made")) || got.Code == 0 {
			t.Errorf("%s: %+v", what, got)
			_ = os.Remove(filepath.Join(r.Work, "made"))
		}
	}
	for what, argv := range map[string][]string{
		"a PATH of the agent's": append([]string{"env", "PATH=" + r.Work + ":" + os.Getenv("PATH")}, r.bawn([]string{"-q"}, "tool", "x")...),
		"and asked for":         append([]string{"env", "PATH=" + r.Work + ":" + os.Getenv("PATH")}, r.bawn([]string{"-q", "--env", "PATH"}, "tool", "x")...),
		"and set":               r.bawn([]string{"-q", "--env", "PATH=" + r.Work}, "tool", "x"),
	} {
		if got := r.agent(t, nil, argv...); strings.Contains(got.Out, "no") {
			t.Errorf("%s: what was judged is not what has run: %+v", what, got)
		}
	}
}

// TestChildOfAnAgent has what commands have, and nothing that is the agent's.
func TestChildOfAnAgent(t *testing.T) {
	t.Parallel()
	r := newAccount(t)
	port := host(t)
	r.Rule(t, "allow", "command", filepath.Join(r.Bin, "guest")+" *")
	flags := []string{"--model", port, "--mode", "permissive"}
	get := r.Guest("get", "http://host.bawn.internal:"+port)
	said(t, "control: the agent", r.agent(t, flags, get...), true)
	said(t, "its child", r.agent(t, flags, r.bawn([]string{"--host-port", port}, get...)...), false)
	asked := []string{"-q", "--env", "OPENAI_API_KEY"}
	said(t, "control: the agent has its key", r.agent(t, flags, r.Guest("variable", "OPENAI_API_KEY")...), true)
	said(t, "its child", r.agent(t, flags, r.bawn(asked, r.Guest("variable", "OPENAI_API_KEY")...)...), false)
}

// TestShellAmongOthers: a program of this machine that is a shell among many
// others runs nothing beside the policy.
func TestShellAmongOthers(t *testing.T) {
	t.Parallel()
	r := newAccount(t)
	at, err := exec.LookPath("busybox")
	if err != nil {
		return // then there is nothing of the kind in a known place
	}
	for what, argv := range map[string][]string{
		"a shell":         {at, "sh", "-c", "echo yes"},
		"its own program": {at, "echo", "yes"},
	} {
		said(t, "control: "+what, r.Run(t, r.bawn(none, argv...)...), true)
		if got := r.agent(t, []string{"--ask-timeout", "1s"}, argv...); got.Code == 0 || got.Out != "" || !strings.Contains(got.Err, "is no shell") {
			t.Errorf("%s: %+v", what, got)
		}
	}
}

// TestRulesOfCommandsAddedLater: a denial that is written while a session runs holds for
// its next command.
func TestRulesOfCommandsAddedLater(t *testing.T) {
	t.Parallel()
	r := newAccount(t)
	r.Rule(t, "allow", "command", "touch *")
	r.put(t, "agent.py", `import os, subprocess, time
for i in range(2):
    while not os.path.exists(f"go{i}"): time.sleep(0.05)
    subprocess.call(["/bin/sh", "-c", f"touch made{i}"])
    open(f"done{i}", "w").close()
`)
	end := r.start(t, r.bawn([]string{"--split"}, "python3", "agent.py")...)
	step := func(i string) bool {
		r.put(t, "go"+i, "")
		testhome.Until(t, patience/2, "the agent's step "+i, func() bool { return exists(filepath.Join(r.Work, "done"+i)) })
		return exists(filepath.Join(r.Work, "made"+i))
	}
	if !step("0") {
		t.Error("control: the command is refused before there is a rule")
	}
	r.Rule(t, "deny", "command", "touch *")
	if step("1") {
		t.Errorf("a command runs that was denied before it: %+v", end())
	}
}

// TestRulesFollowPrograms: what a rule forbids of a command it forbids of the program too,
// when a program starts it, in both zones and with every provider that can hold it.
func TestRulesFollowPrograms(t *testing.T) {
	t.Parallel()
	r := newAccount(t)
	r.put(t, "agent.py", `import os, subprocess
for argv in (["id"], ["/usr/bin/env", "id"], [os.path.realpath("/usr/bin/id")]):
    try: print("ran", subprocess.run(argv, capture_output=True, text=True).stdout)
    except PermissionError: print("refused")
`)
	kinds := map[string][]string{"native": nil, "split": {"--split"}}
	if _, err := exec.LookPath("bwrap"); err == nil {
		kinds["bwrap"] = []string{"--provider", "bwrap"}
	}
	for what, flags := range kinds {
		run := r.bawn(append([]string{"-q", "--net", "none"}, flags...), "/usr/bin/python3", "agent.py")
		if got := r.Run(t, run...); strings.Count(got.Out, "ran uid=") != 3 {
			t.Errorf("control: %s: %+v", what, got)
		}
	}
	r.Rule(t, "deny", "command", "id *")
	for what, flags := range kinds {
		run := r.bawn(append([]string{"-q", "--net", "none"}, flags...), "/usr/bin/python3", "agent.py")
		if got := r.Run(t, run...); strings.Contains(got.Out, "ran") || strings.Count(got.Out, "refused") != 3 {
			t.Errorf("%s: %+v", what, got)
		}
	}
}

// TestUnreadablePrograms: what a program that may be executed and not read starts can't be
// judged, so that it does not start where rules hold programs.
func TestUnreadablePrograms(t *testing.T) {
	testenv.Need(t, "root") // who can make another user's programs
	r := newAccount(t)
	env, err := os.ReadFile("/usr/bin/env")
	check(t, err)
	for name, mode := range map[string]os.FileMode{"readable": 0o755, "unreadable": 0o711} {
		check(t, os.WriteFile(filepath.Join(r.Work, name), env, mode))
		check(t, os.Chown(filepath.Join(r.Work, name), 1, 1))
		check(t, os.Chmod(filepath.Join(r.Work, name), mode))
	}
	run := func(words ...string) string {
		got := r.Run(t, r.bawn([]string{"-q", "--net", "none"}, words...)...)
		return got.Out
	}
	if got := run("./unreadable", "id"); !strings.Contains(got, "uid=") {
		t.Errorf("control: without a rule: %q", got)
	}
	r.Rule(t, "deny", "command", "id *")
	if got := run("./readable", "uname"); !strings.Contains(got, "Linux") {
		t.Errorf("control: another program: %q", got)
	}
	for _, words := range [][]string{{"./readable", "id"}, {"./unreadable", "id"}} {
		if got := run(words...); strings.Contains(got, "uid=") {
			t.Errorf("%q: %q; want that it does not start", words, got)
		}
	}
}
