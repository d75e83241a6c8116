package hook

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn"
)

// FuzzRead hands every agent's messages to its reader. What is read has actions
// that a policy takes and an answer that denies where that was decided; a
// command that was replaced is the one that was judged.
func FuzzRead(f *testing.F) {
	names := Agents()
	for i, agent := range names {
		data, err := os.ReadFile(filepath.Join("testdata", agent+".jsonl"))
		if err != nil {
			f.Fatal(err)
		}
		for line := range bytes.Lines(data) {
			f.Add(uint8(i), line)
		}
	}
	f.Fuzz(func(t *testing.T, n uint8, message []byte) {
		agent := names[int(n)%len(names)]
		c, err := Read(agent, message)
		if err != nil {
			if !denies(agent, Broken(agent, err)) {
				t.Fatal("what can't be read is allowed")
			}
			return
		}
		for _, a := range c.Actions {
			if !a.Valid() && c.Phase != Seen && a.Kind != bawn.Filesystem { // an empty path is the policy's to refuse
				t.Fatalf("invalid action %+v", a)
			}
		}
		if c.Phase != Seen && !denies(agent, Answer(c, Outcome{Reason: "no"})) {
			t.Fatal("a denial is no denial")
		}
		if c.Command != "" {
			replaced(t, agent, &c)
		}
	})
}

// replaced checks that only the command that was judged is replaced, and that
// the agent is told the new one.
func replaced(t *testing.T, agent string, c *Call) {
	if len(c.Actions) != 1 || c.Actions[0].Resource != c.Command {
		t.Fatalf("%q may be replaced, %+v is judged", c.Command, c.Actions)
	}
	const text = "bawn-was-here"
	out := Answer(*c, Outcome{Verdict: bawn.Allow, Rewritten: text})
	if denies(agent, out) || !bytes.Contains(out.Stdout, []byte(text)) {
		t.Fatalf("got %s", out.Stdout)
	}
}

// FuzzMoved writes moves of anything, and reads what is no move.
func FuzzMoved(f *testing.F) {
	f.Add("/bawn", "/p", "/p/it's", "A=b", "ls 'x'\ny", "s", true)
	f.Add("/bin/x run", "", "", "", "", "", false)
	f.Add("/bawn", "/p", "/p", "", "cd -- /q || exit\nls", "--covered", false)
	f.Add("/bawn", "/p", "/p/a || exit\nb", "", "cd -- 'c || exit\nd' || exit\nls", "", true)
	f.Fuzz(func(t *testing.T, program, workspace, dir, kv, text, session string, pin bool) {
		m := Move{Program: program, Agent: "claude", Workspace: workspace, Dir: dir, Env: []string{kv}, Shell: "/bin/bash", Text: text, Session: session, PinGit: pin, Covered: pin}
		line := m.String()
		if strings.Contains(program+workspace+dir+kv+text+session, "\x00") {
			if line != "" {
				t.Fatal("a NUL was written")
			}
			return
		}
		got, ok := Moved(line)
		if !ok || got.Text != text || got.Dir != dir || got.Workspace != workspace || got.Program != program || !slices.Equal(got.Env, m.Env) || got.PinGit != pin || got.Covered != pin || got.Session != session {
			t.Fatalf("%q: got %+v, %v", line, got, ok)
		}
		if m, ok := Moved(text); ok && m.String() != text {
			t.Fatalf("%q was taken for %q", text, m)
		}
	})
}
