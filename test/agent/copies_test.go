package agent_test

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/bawn-dev/bawn/internal/testenv"
	"github.com/bawn-dev/bawn/internal/testenv/clients"
)

// notes has a line for each agent to change, and lines between them.
const notes = "one\n\n\n\ntwo\n\n\n\nthree\n"

// onCopies are the agents that work at once, with what each makes of notes: the second
// changes another line than the first, the third the same.
var onCopies = []struct{ agent, change string }{
	{"claude", "s/one/ONE of claude/"},
	{"codex", "s/three/THREE of codex/"},
	{"gemini", "s/one/ONE of gemini/"},
}

// TestCopies has agents work at once on copies of one repository, each without the
// others' changes, and a human apply one after the other. What the host would execute is
// held back, changes of different lines are merged, and of the same line the human's
// version stays until one is chosen.
func TestCopies(t *testing.T) {
	bawn, model := programs(t)
	all := onCopies
	if testenv.Short() {
		all = all[:2]
	}
	var accounts []*account
	for _, c := range all {
		accounts = append(accounts, onCopy(t, clientNamed(t, c.agent), model, c.change, accounts))
	}
	first := accounts[0]
	var done sync.WaitGroup
	for _, y := range accounts {
		argv := []string{bawn, "run", "--copy", "--name", y.agent.Name, "--model", "http://127.0.0.1:" + y.port(), "--"}
		done.Go(func() { y.finish(t, append(argv, y.agent.Command(true)...)...) })
	}
	done.Wait()
	if got := first.read(t, first.work+"/notes"); got != notes {
		t.Fatalf("before anything is applied the workspace has %q", got)
	}
	for _, y := range accounts {
		out := y.run(t, bawn, "apply", y.agent.Name, "--yes")
		if !strings.Contains(out, "held      .envrc") || !strings.Contains(out, "add       "+y.agent.Name) {
			t.Errorf("%s: apply says\n%s", y.agent.Name, out)
		}
		t.Logf("%s", out)
	}
	want := strings.Replace(strings.Replace(notes, "one", "ONE of claude", 1), "three", "THREE of codex", 1)
	if got := first.read(t, first.work+"/notes"); got != want {
		t.Errorf("applied: %q; want %q", got, want)
	}
	if len(accounts) == 3 {
		first.run(t, bawn, "apply", "gemini", "notes", "--conflicts", "session", "--yes")
		want = strings.Replace(want, "of claude", "of gemini", 1)
		if got := first.read(t, first.work+"/notes"); got != want {
			t.Errorf("with the session's line: %q; want %q", got, want)
		}
	}
	if status := first.run(t, "git", "status", "--porcelain"); strings.Contains(status, ".envrc") {
		t.Errorf("the workspace has what was held back:\n%s", status)
	}
	first.run(t, bawn, "audit", "verify")
}

// onCopy makes an agent's account. All but the first work in the first one's home and
// project.
func onCopy(t *testing.T, a clients.Client, model, change string, others []*account) *account {
	t.Helper()
	y := newAccount(t, a, model)
	if len(others) == 0 {
		put(t, notes, y.work, "notes")
		y.run(t, "git", "add", "notes")
		y.run(t, "git", "-c", "user.name=dev", "-c", "user.email=dev@example.com", "commit", "-q", "-m", "notes")
	} else {
		y.home, y.work = others[0].home, others[0].work
	}
	write(t, y, []string{
		"sed -i '" + change + "' notes && cat notes",
		"echo work of " + a.Name + " > " + a.Name + " && ls",
		"echo 'touch ~/executed' > .envrc && cat .envrc",
		"cat ~/.netrc",
	})
	y.serve(t)
	return y
}

func clientNamed(t *testing.T, name string) clients.Client {
	t.Helper()
	all := clients.All()
	i := slices.IndexFunc(all, func(c clients.Client) bool { return c.Name == name })
	if i < 0 {
		t.Fatalf("no agent %q", name)
	}
	return all[i]
}
