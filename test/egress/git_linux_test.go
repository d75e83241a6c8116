package egress_test

import (
	"fmt"
	"os/user"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn/internal/testenv"
)

// A hub is where repositories are outside: for each push one that a guest may
// push to, in parts, and one that it may only fetch.
type hub struct {
	d    *account
	dir  string // of the repositories
	base string // what stands before a repository's name in its URL
	rule string // what stands before it in a rule
	host string // in a rule
	odd  int    // 1 tries the odd ones of pushes, where testenv.Short says that half will do
}

// A push is what a guest tries in a clone.
type push struct{ name, line string }

// tried are the pushes of this hub: the first, and all others or every second.
func (h *hub) tried() (list []push) {
	for i, p := range pushes {
		if i == 0 || !testenv.Short() || i%2 == h.odd {
			list = append(list, p)
		}
	}
	return list
}

// newHub makes bare repositories that take pushes from everybody.
func newHub(t *testing.T, d *account) *hub {
	t.Helper()
	name := filepath.Base(d.home)
	h := &hub{host: "git.test", d: d, dir: filepath.Join(d.lab, "repos", name), base: "https://git.test/git/" + name + "/", rule: "git/" + name + "/"}
	put(t, "[user]\n\tname = dev\n\temail = dev@example.com\n[init]\n\tdefaultBranch = main\n[push]\n\tdefault = nothing\n", d.home, ".gitconfig")
	return h
}

// fill makes the repositories anew, with two commits and a branch of the agent's.
func (h *hub) fill(t *testing.T) {
	t.Helper()
	r := h.d.sh(t, strings.Join([]string{
		"rm -rf '" + h.dir + "' seed && mkdir -p '" + h.dir + "' && git init -q seed && cd seed && echo one > file && git add file && git commit -qm one && echo two > file && git commit -qam two && git branch agent/old",
		"for r in app other; do git clone -q --bare . '" + h.dir + "/'$r.git && git -C '" + h.dir + "/'$r.git config http.receivepack true || exit 1; done",
		fmt.Sprintf("cd '%s' && for i in $(seq 0 %d); do cp -r app.git app$i.git && cp -r other.git other$i.git || exit 1; done", h.dir, len(pushes)-1),
	}, "\n"))
	if r.code != 0 {
		t.Fatalf("make repositories: %s%s", r.out, r.err)
	}
}

// refs are those of a repository, as its server sees them.
func (h *hub) refs(t *testing.T, repo string) string {
	t.Helper()
	r := h.d.run(t, "git", "-C", filepath.Join(h.dir, repo+".git"), "for-each-ref", "--format=%(refname) %(objectname)")
	return r.out
}

// pushes are all of them. Only the first is allowed.
var pushes = []push{
	{"the agent's branch", "git commit -q --allow-empty -m three && git push -q origin HEAD:refs/heads/agent/new"},
	{"main", "git commit -q --allow-empty -m four && git push -q origin HEAD:refs/heads/main"},
	{"a tag", "git push -q origin HEAD:refs/tags/v1"},
	{"by force", "git push -q --force origin HEAD~1:refs/heads/agent/old"},
	{"by force, unsaid", "git push -q origin +HEAD~1:refs/heads/agent/old"},
	{"delete", "git push -q origin :refs/heads/agent/old"},
	{"both", "git push -q origin HEAD:refs/heads/agent/both HEAD:refs/heads/main2"},
	{"mirror", "git push -q --mirror origin"},
	{"another repository", "git push -q OTHER HEAD:refs/heads/agent/new"},
}

// attack pushes each from a fresh clone to repositories of its own, and
// returns which changed something, and what was said of the others.
func (h *hub) attack(t *testing.T, run func(script string) result) (changed map[string]bool, said string) {
	t.Helper()
	h.fill(t)
	var lines, before []string
	refs := func(i int) string { return h.refs(t, fmt.Sprint("app", i)) + h.refs(t, fmt.Sprint("other", i)) }
	tried := h.tried()
	for i, p := range tried {
		before = append(before, refs(i))
		line := strings.ReplaceAll(p.line, "OTHER", fmt.Sprintf("%sother%d.git", h.base, i))
		lines = append(lines, fmt.Sprintf("D=$(mktemp -d) && trap 'rm -rf $D 2>/dev/null' EXIT && cd $D && git clone -q %sapp%d.git clone && cd clone && git fetch -q origin && echo cloned && %s", h.base, i, line))
	}
	changed = map[string]bool{}
	for i, r := range h.d.lines(t, run, lines) {
		if !strings.Contains(r.out, "cloned") {
			t.Errorf("%s: no clone after %v: %s", tried[i].name, r.took, r.out)
		}
		if changed[tried[i].name] = refs(i) != before[i]; !changed[tried[i].name] {
			said += fmt.Sprintf("%s, after %v: %.200q\n", tried[i].name, r.took, r.out)
		}
	}
	return changed, said
}

// check wants the control to succeed with all and a guest with the first.
func (h *hub) check(t *testing.T) {
	t.Helper()
	flags := []string{"--git", h.host + " fetch " + h.rule + "*", "--git", h.host + " push " + h.rule + "app* refs/heads/agent/*"}
	bare, _ := h.attack(t, func(script string) result { // ssh knows its user's home from elsewhere than HOME
		return h.d.sh(t, "export GIT_SSH_COMMAND=\"ssh -o UserKnownHostsFile='$HOME/.ssh/known_hosts'\"; "+script)
	})
	inside, said := h.attack(t, func(script string) result { return h.d.inside(t, flags, script) })
	for i, p := range h.tried() {
		if !bare[p.name] {
			t.Errorf("the control could not push %s", p.name)
		}
		if inside[p.name] != (i == 0) {
			t.Errorf("the guest pushed %s: %v", p.name, inside[p.name])
		}
	}
	t.Log(said)
}

// TestGitHTTPS lets a guest fetch, and push to its own branches alone.
func TestGitHTTPS(t *testing.T) {
	h := newHub(t, newAccount(t, "git"))
	h.check(t)
}

// TestGitSSH is the same with OpenSSH's server and a key in the human's agent.
func TestGitSSH(t *testing.T) {
	d := newAccount(t, "git", "sshd")
	h := newHub(t, d)
	me, err := user.Current()
	check(t, err)
	h.base = "ssh://" + me.Username + "@git.test" + h.dir + "/"
	h.rule, h.host, h.odd = h.dir+"/", me.Username+"@git.test", 1
	d.serveSSH(t)
	h.check(t)
}

// serveSSH starts a server outside that knows the machine's key, which an agent
// has, and tells the machine the server's key.
func (d *account) serveSSH(t *testing.T) {
	t.Helper()
	dir := filepath.Join(d.home, "sshd")
	sock := filepath.Join(d.home, "agent")
	r := d.sh(t, strings.Join([]string{
		"mkdir -p -m 700 '" + dir + "' ~/.ssh && chmod 700 ~ ~/.ssh && ssh-keygen -q -t ed25519 -N '' -f '" + dir + "/host' && ssh-keygen -q -t ed25519 -N '' -f ~/.ssh/id_ed25519",
		"cp ~/.ssh/id_ed25519.pub '" + dir + "/authorized' && echo \"git.test $(cat '" + dir + "/host.pub')\" > ~/.ssh/known_hosts",
	}, " && "))
	if r.code != 0 {
		t.Fatalf("make keys: %s%s", r.out, r.err)
	}
	conf := put(t, strings.Join([]string{
		"ListenAddress 93.184.215.19:22", "HostKey " + dir + "/host", "AuthorizedKeysFile " + dir + "/authorized", "StrictModes no", "UsePAM no",
		"PidFile none", "PasswordAuthentication no", "PermitRootLogin yes", "LogLevel ERROR", "",
	}, "\n"), dir, "config")
	program, err := testenv.SSHD()
	check(t, err)
	server := d.outside(t, order{Argv: []string{program, "-D", "-f", conf, "-E", filepath.Join(dir, "log")}})
	t.Cleanup(func() { d.kill(t, server.PID) })
	agent := d.command(t.Context(), "ssh-agent", "-D", "-a", sock)
	check(t, agent.Start())
	t.Cleanup(func() { _ = agent.Process.Kill(); _ = agent.Wait() })
	d.env = append(d.env, "SSH_AUTH_SOCK="+sock)
	testenv.Until(t, "the agent answers", func() bool { return answers(sock) == nil })
	if r := d.sh(t, "ssh-add -q ~/.ssh/id_ed25519"); r.code != 0 {
		t.Fatalf("ssh-add: %s%s", r.out, r.err)
	}
	check(t, listening("git.test:22"))
}
