package egress_test

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestPush pushes with git over HTTPS to a real server of git: the branch that
// an entry lists arrives, byte for byte, also where the pack is more than is
// looked at; any other does not.
func TestPush(t *testing.T) {
	d := newAccount(t, "git")
	bare := filepath.Join(d.lab, "repos/team/pushed.git")
	setup := d.sh(t, `set -e; export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b.example GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b.example
git init -q --bare -b main `+bare+`; git -C `+bare+` config http.receivepack true
git init -q -b main .; head -c 300000 /dev/urandom > noise; git add noise; git commit -qm one
git push -q `+bare+` main main:refs/heads/agent/old; head -c 300000 /dev/urandom > more; git add more; git commit -qm two; git rev-parse HEAD main:noise`)
	if setup.code != 0 {
		t.Fatalf("%s%s", setup.out, setup.err)
	}
	head := strings.Fields(setup.out)[0]
	flags := []string{"--allow", "git.test", "--git", "git.test push git/team/pushed refs/heads/agent/*"}
	const push = "export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0='*'; git push https://git.test/git/team/pushed.git "
	ref := func(name string) string {
		return strings.TrimSpace(d.sh(t, "git -C "+bare+" rev-parse --verify -q "+name).out)
	}
	if r := d.inside(t, flags, push+"HEAD:refs/heads/main"); r.code == 0 || ref("main") == head {
		t.Errorf("main was pushed: %s%s", r.out, r.err)
	}
	for _, name := range []string{"agent/old", "agent/new"} {
		if r := d.inside(t, flags, push+"HEAD:refs/heads/"+name); r.code != 0 || ref(name) != head {
			t.Errorf("%s was not pushed: %s%s", name, r.out, r.err)
		}
	}
	if r := d.inside(t, flags, strings.Replace(push, "https:", "http:", 1)+"HEAD:refs/heads/main"); r.code == 0 || ref("main") == head {
		t.Errorf("main was pushed over plain HTTP: %s%s", r.out, r.err)
	}
	if r := d.sh(t, "git -C "+bare+" fsck --strict"); r.code != 0 {
		t.Errorf("what arrived is broken: %s%s", r.out, r.err)
	}
}
