package egress_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn/internal/testenv"
)

// TestPushIsOfferedTheSecret: a push to a forge for which the vault has a secret that the
// session was not lent asks once, with the secret's name, and goes on with it after a yes.
// The guest has neither the value nor a placeholder, the yes is for that repository, and
// without a secret that could be lent nobody is asked.
func TestPushIsOfferedTheSecret(t *testing.T) {
	d := newAccount(t, "git")
	bare, other := filepath.Join(d.lab, "repos/locked/app.git"), filepath.Join(d.lab, "repos/locked/other.git")
	setup := d.sh(t, `set -e; export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b.example GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b.example
for r in '`+bare+`' '`+other+`'; do git init -q --bare -b main "$r"; git -C "$r" config http.receivepack true; done
git init -q -b main .; git commit -q --allow-empty -m one; git rev-parse HEAD`)
	if setup.code != 0 {
		t.Fatalf("%s%s", setup.out, setup.err)
	}
	head := strings.TrimSpace(setup.out)
	ref := func(repo, name string) string {
		return strings.TrimSpace(d.sh(t, "git -C '"+repo+"' rev-parse --verify -q "+name).out)
	}
	const push = "export GIT_TERMINAL_PROMPT=0 GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0='*'; git push -q https://git.test/git/locked/"
	flags := []string{"--git", "git.test fetch", "--ask-timeout", "60s"}

	s := d.openTerminal(t, flags, push+"app.git HEAD:refs/heads/none; echo done") // the control: the vault is empty
	if screen := s.end(); strings.Contains(screen, prompt) || ref(bare, "none") != "" {
		t.Errorf("without a secret somebody is asked, or it is pushed:\n%s", screen)
	}

	d.vault(t, "forge-token", lockedBy, "--host git.test --basic x-access-token")
	s = d.openTerminal(t, flags, push+"app.git HEAD:refs/heads/fix; "+push+"app.git HEAD:refs/heads/more; env; "+push+"other.git HEAD:refs/heads/fix; echo done")
	s.see(prompt)
	for _, words := range []string{"push", "git/locked/app", "forge-token", "a yes is for pushing to"} {
		if !strings.Contains(s.screen(), words) {
			t.Errorf("the question does not say %q:\n%s", words, s.screen())
		}
	}
	if ref(bare, "fix") != "" {
		t.Error("it was pushed before the answer")
	}
	s.say("y")
	testenv.Until(t, "a second question", func() bool { return strings.Count(s.screen(), prompt) == 2 })
	s.say("n")
	screen := s.end()
	if ref(bare, "fix") != head || ref(bare, "more") != head || ref(other, "fix") != "" || strings.Count(screen, prompt) != 2 {
		t.Errorf("fix %q, more %q, elsewhere %q, %d questions; want two pushes, none elsewhere, and two questions:\n%s", ref(bare, "fix"), ref(bare, "more"), ref(other, "fix"), strings.Count(screen, prompt), screen)
	}
	if strings.Contains(screen, lockedBy) {
		t.Error("the guest, or its terminal, has seen the value")
	}
	s = d.openTerminal(t, flags, push+"app.git HEAD:refs/heads/no; echo done")
	s.see(prompt)
	s.say("n")
	if s.end(); ref(bare, "no") != "" {
		t.Error("a no was pushed")
	}
	s = d.openTerminal(t, flags, push+"app.git +HEAD~0:refs/heads/fix :refs/heads/more; echo done") // a yes deletes nothing
	s.see(prompt)
	s.say("y")
	if s.end(); ref(bare, "more") != head {
		t.Error("a branch was deleted")
	}
}

// TestRequestIsOfferedTheSecret: a change at an API about which the human is asked anyway
// names the secret that the vault has for it, which goes with the request after a yes and
// with no other.
func TestRequestIsOfferedTheSecret(t *testing.T) {
	d := newAccount(t)
	const value = "sk-0123456789abcdefghij"
	d.vault(t, "tok", value, "--host api.test --bearer")
	m := d.now(t)
	s := d.openTerminal(t, []string{"--http", "api.test GET /**", "--ask-timeout", "60s"},
		"curl -sS -m 30 https://api.test/read; curl -sS -m 30 -d x https://api.test/issues/1; curl -sS -m 30 -d x https://api.test/issues/2; curl -sS -m 30 -d x https://api.test/labels; echo done")
	s.see(prompt)
	if !strings.Contains(s.screen(), `the secret "tok"`) {
		t.Errorf("the question does not name it:\n%s", s.screen())
	}
	s.say("y")
	testenv.Until(t, "a second question", func() bool { return strings.Count(s.screen(), prompt) == 2 })
	s.say("n")
	screen := s.end()
	with := 0
	for _, e := range d.since(t, m) {
		if strings.Contains(fmt.Sprint(e), value) {
			with++
		}
	}
	if with != 2 || strings.Contains(screen, "POST /labels") || strings.Contains(screen, value) {
		t.Errorf("%d requests had the value; want the two of the operation, no other:\n%s", with, screen)
	}
}
