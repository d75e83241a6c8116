package egress_test

import (
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn/internal/testenv"
)

// pushable makes a repository of the account's workspace whose branch fix is pushed to a
// bare one outside, and returns what a ref of that one is at.
func (d *account) pushable(t *testing.T, bare, url string) (head string, ref func(string) string) {
	t.Helper()
	setup := d.sh(t, `set -e; export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b.example GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b.example
git init -q --bare -b main '`+bare+`'; git -C '`+bare+`' config http.receivepack true
git init -q -b fix .; git config push.default current; git remote add origin '`+url+`'; git commit -q --allow-empty -m one; git rev-parse HEAD`)
	if setup.code != 0 {
		t.Fatalf("%s%s", setup.out, setup.err)
	}
	return strings.TrimSpace(setup.out), func(name string) string {
		return strings.TrimSpace(d.sh(t, "git -C '"+bare+"' rev-parse --verify -q "+name).out)
	}
}

// split is a session whose commands are decided before they run.
func (d *account) split(t *testing.T, line string, flags ...string) *terminal {
	t.Helper()
	return d.atTerminal(t, d.insideArgs(t, append([]string{"--split", "--ask-timeout", "60s"}, flags...), "/bin/sh", "-c", line)...)
}

// answers gives an answer to each question as it comes, and returns the screen at the end.
func (s *terminal) answers(list ...string) string {
	s.t.Helper()
	for i, a := range list {
		testenv.Until(s.t, "a question", func() bool { return strings.Count(s.screen(), prompt) > i })
		s.say(a)
	}
	return s.end()
}

// TestOneQuestionAnAction: what a command sends out is asked about once, where it
// connects, with what it really sends: the ref of a plain push, the package that is
// published. The same by a program that no form knows asks as well.
func TestOneQuestionAnAction(t *testing.T) {
	d := newAccount(t, "git", "python3")
	head, ref := d.pushable(t, filepath.Join(d.lab, "repos/team/one.git"), "https://git.test/git/team/one.git")
	for _, name := range []string{"npm", "cargo", "gem", "twine", "gh"} {
		p := put(t, "#!/bin/sh\nexec curl -sS -m 60 -X PUT -d "+name+" https://api.test/"+name+"\n", d.work, name)
		check(t, os.Chmod(p, 0o755))
	}
	read := []string{"--git", "git.test fetch", "--http", "api.test GET /**"}

	screen := d.split(t, "git push -q; echo done", read...).answers("y")
	if ref("fix") != head || strings.Count(screen, prompt) != 1 {
		t.Errorf("fix is at %q after %d questions; want %q after one:\n%s", ref("fix"), strings.Count(screen, prompt), head, screen)
	}
	for _, words := range []string{"git/team/one", "refs/heads/fix"} {
		if !strings.Contains(screen, words) {
			t.Errorf("the question does not say %q:\n%s", words, screen)
		}
	}

	m := d.now(t)
	const publish = "./npm publish; ./cargo publish; ./gem push x.gem; ./twine upload x; ./gh pr create --fill; "
	const python = `python3 -c 'import urllib.request as u; u.urlopen(u.Request("https://api.test/python", b"x", method="PUT"))'; echo done`
	screen = d.split(t, publish+python, read...).answers("y", "y", "y", "y", "y", "n")
	if n := strings.Count(screen, prompt); n != 6 {
		t.Errorf("%d questions; want one for each of five commands and one for the program of Python:\n%s", n, screen)
	}
	for _, at := range []string{"npm", "cargo", "gem", "twine", "gh", "python"} {
		if came := strings.Contains(fmt.Sprint(d.since(t, m)), "/"+at); came != (at != "python") || !strings.Contains(screen, "https://api.test/"+at) {
			t.Errorf("%s: came to the host: %t; or it is not in a question:\n%s", at, came, screen)
		}
	}

	// With a host that is not looked into the command asks, and its yes is for the
	// connection that it names, too.
	screen = d.split(t, "git push -q origin fix:two; echo done", append(read, "--allow", "unseen.test")...).answers("y")
	if ref("two") != head || strings.Count(screen, prompt) != 1 || !strings.Contains(screen, "git push -q origin fix:two") {
		t.Errorf("two is at %q after %d questions; want %q after one about the command:\n%s", ref("two"), strings.Count(screen, prompt), head, screen)
	}
}

// TestPushOverSSHAsksOnce: a push over SSH asks once, where it connects, whatever the
// program is called.
func TestPushOverSSHAsksOnce(t *testing.T) {
	d := newAccount(t, "git", "sshd")
	me, err := user.Current()
	check(t, err)
	dir := filepath.Join(d.home, "hub")
	check(t, os.MkdirAll(dir, 0o755))
	head, ref := d.pushable(t, filepath.Join(dir, "app.git"), "ssh://"+me.Username+"@git.test"+dir+"/app.git")
	d.serveSSH(t)
	read := []string{"--git", me.Username + "@git.test fetch " + dir + "/*"}
	screen := d.split(t, "git push -q; echo done", read...).answers("y")
	if ref("fix") != head || strings.Count(screen, prompt) != 1 || !strings.Contains(screen, "refs/heads/fix") {
		t.Errorf("fix is at %q after %d questions; want %q after one that names it:\n%s", ref("fix"), strings.Count(screen, prompt), head, screen)
	}
	screen = d.split(t, "cp $(command -v git) tool; ./tool push -q origin fix:renamed; echo done", read...).answers("n")
	if ref("renamed") != "" || strings.Count(screen, prompt) != 1 || !strings.Contains(screen, "refs/heads/renamed") {
		t.Errorf("by another name: at %q after %d questions; want none, and one that names the ref:\n%s", ref("renamed"), strings.Count(screen, prompt), screen)
	}
}
