package agent_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/testenv"
)

// signature is what agents put below the messages of commits.
var signature = regexp.MustCompile(`\n\nCo-authored-by: [^'\n]*`)

// intents wants each command of the task in the log, once, with what was
// decided about it, by whom and, where it ran, its ticket.
func (y *account) intents(t *testing.T, program string) {
	t.Helper()
	y.run(t, program, "audit", "verify")
	found, tickets := map[string][]bawn.Event{}, map[string]bool{}
	for line := range strings.Lines(y.run(t, program, "audit", "query", "--json", "--limit", "0", "--kind", "command", "--agent", y.agent.Name)) {
		var record struct{ Event bawn.Event }
		check(t, json.Unmarshal([]byte(line), &record))
		e := record.Event
		if e.Details["zone"] != "execution" {
			continue // the agent itself
		}
		asked := signature.ReplaceAllString(cmp.Or(e.Details["asked"], e.Resource), "")
		found[asked] = append(found[asked], e)
		if allowed := e.Resolved == bawn.Allow; allowed == (e.Ticket == "") || tickets[e.Ticket] && allowed {
			t.Errorf("%q is resolved as %v with the ticket %q; want one of its own where it is allowed", asked, e.Resolved, e.Ticket)
		}
		tickets[e.Ticket] = true
	}
	t.Logf("%d commands ran, %d of them of the agent's own", len(tickets)-1, len(tickets)-1-len(y.commandLines())+2)
	for _, line := range y.commandLines() {
		requested, resolved, source := bawn.Allow, bawn.Allow, "rule"
		switch line {
		case deploy:
			requested, source = bawn.Ask, "user"
		case push:
			requested, resolved, source = bawn.Ask, bawn.Deny, "user"
		}
		if all := found[line]; len(all) != 1 {
			t.Errorf("the log has %d intents of %q, want 1", len(all), line)
		} else if e := all[0]; e.Requested != requested || e.Resolved != resolved || e.Source != source {
			t.Errorf("the intent of %q is requested as %v, resolved as %v by %s", line, e.Requested, e.Resolved, e.Source)
		}
	}
}

// commandLines are the steps of the task that are commands.
func (y *account) commandLines() (lines []string) {
	for _, step := range y.task() {
		if line, ok := step.(string); ok {
			lines = append(lines, line)
		}
	}
	return lines
}

// clean wants nothing left of a session and a relay that have ended, but files
// that are kept.
func (y *account) clean(t *testing.T) {
	t.Helper()
	var left []string
	defer func() {
		if t.Failed() {
			t.Logf("left: %q", left)
		}
	}()
	testenv.Until(t, "the end of all that the session and the relay had", func() bool {
		left = append(y.processes(t), y.places(t)...)
		return len(left) == 0
	})
}

// processes are those that work in the account's home or were told of it.
func (y *account) processes(t *testing.T) (found []string) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*")
	check(t, err)
	for _, p := range all { // what is gone, or somebody else's, says nothing
		dir, _ := os.Readlink(p + "/cwd")
		env, _ := os.ReadFile(p + "/environ")
		if strings.HasPrefix(dir, y.home) || strings.Contains(string(env), "HOME="+y.home+"\x00") {
			name, _ := os.ReadFile(p + "/cmdline")
			found = append(found, filepath.Base(p)+" "+strings.ReplaceAll(string(name), "\x00", " "))
		}
	}
	return found
}

// places are sockets, and what belongs to one session.
func (y *account) places(t *testing.T) (found []string) {
	t.Helper()
	perSession := []string{".cache/bawn/split", ".local/state/bawn/run/sessions", ".local/state/bawn/run/sockets"}
	check(t, fs.WalkDir(os.DirFS(y.home), ".", func(p string, d fs.DirEntry, err error) error {
		if err == nil && (d.Type()&fs.ModeSocket != 0 || slices.Contains(perSession, filepath.Dir(p))) {
			found = append(found, p)
		}
		if errors.Is(err, fs.ErrPermission) { // sealed: what guests have written
			return fs.SkipDir
		}
		return err
	}))
	return found
}

// pace is how long the agent took from being told a command to saying what
// came of it: the median and the sum of those in both, in milliseconds. Builds
// and what a human is asked about are left out.
func (y *account) pace(t *testing.T) (median, sum int64) {
	t.Helper()
	var took []int64
	all, steps := y.told(t), y.task()
	for i := 1; i < len(all); i++ {
		line, isCommand := "", false
		if step := all[i].Step - 1; step >= 0 && step < len(steps) {
			line, isCommand = steps[step].(string)
		}
		slow := strings.Contains(line, "go ") || strings.Contains(line, "make") || strings.HasPrefix(line, "cc ")
		if isCommand && !slow && line != push && all[i].Result != "" {
			took = append(took, all[i].MS-all[i-1].MS)
			sum += took[len(took)-1]
		}
	}
	slices.Sort(took)
	return took[len(took)/2], sum
}
