package cli

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/audit"
	"github.com/bawn-dev/bawn/internal/launch"
	"github.com/bawn-dev/bawn/internal/redact"
	"github.com/bawn-dev/bawn/internal/settings"
	"github.com/bawn-dev/bawn/internal/verb"
)

var auditTime = time.Date(2026, 9, 1, 12, 0, 0, 0, time.UTC)

// auditLog makes a state directory whose log holds the events.
func auditLog(t *testing.T, events ...bawn.Event) (state string) {
	t.Helper()
	state = t.TempDir()
	l, err := audit.Open(filepath.Join(state, "bawn", "audit"), audit.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, e := range events {
		if err := l.Record(context.Background(), e); err != nil {
			t.Fatal(err)
		}
	}
	return state
}

func auditEvent(change func(*bawn.Event)) bawn.Event {
	e := bawn.Event{ID: "id", Time: auditTime, Session: "s1", Agent: "claude", Kind: "filesystem", Operation: "read",
		Resource: "/w/x", Resolved: bawn.Allow, Source: "rule", Rule: "policy.toml:3", Reason: "in the workspace"}
	if change != nil {
		change(&e)
	}
	return e
}

// runAudit runs bawn audit ARGS as bawn would and returns what it prints.
func runAudit(t *testing.T, state string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	e, read := fileEnv(t, "XDG_STATE_HOME="+state)
	cmd := newAuditCommand(e)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(args)
	cmd.SetOut(e.Stdout)
	err := cmd.Execute()
	var status verb.Status
	switch {
	case errors.As(err, &status):
		code = int(status)
	case err != nil:
		code = report(e, err, false)
	}
	stdout, stderr = read()
	return code, stdout, stderr
}

// fileEnv returns an Env that writes to files, and a function that reads them.
func fileEnv(t *testing.T, environ ...string) (*launch.Env, func() (stdout, stderr string)) {
	t.Helper()
	dir := t.TempDir()
	var files [2]*os.File
	for i := range files {
		f, err := os.Create(filepath.Join(dir, fmt.Sprint(i)))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		files[i] = f
	}
	return &launch.Env{World: verb.World{Stdout: files[0], Stderr: files[1], Environ: environ, Dir: dir}}, func() (string, string) {
		out, err1 := os.ReadFile(files[0].Name())
		msg, err2 := os.ReadFile(files[1].Name())
		if err := errors.Join(err1, err2); err != nil {
			t.Fatal(err)
		}
		return string(out), string(msg)
	}
}

func TestStateDir(t *testing.T) {
	for _, c := range []struct {
		environ []string
		want    string
	}{
		{[]string{"HOME=/h", "XDG_STATE_HOME=/s"}, "/s/bawn"},
		{[]string{"HOME=/h"}, "/h/.local/state/bawn"},
		{[]string{"HOME=/h", "XDG_STATE_HOME="}, "/h/.local/state/bawn"},
		{[]string{"HOME=/h", "XDG_STATE_HOME=relative"}, "/h/.local/state/bawn"},
		{[]string{"HOME=/h", "BAWN_STATE_DIR=/evil"}, "/h/.local/state/bawn"},
		{[]string{"HOME=h"}, ""},
		{nil, ""},
	} {
		got, err := settings.StateDir(&verb.World{Environ: c.environ})
		if got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("stateDir with %q = %q, %v; want %q", c.environ, got, err, c.want)
		}
	}
}

func TestAuditQueryTable(t *testing.T) {
	state := auditLog(t, auditEvent(nil), auditEvent(func(e *bawn.Event) {
		e.Session, e.Kind, e.Operation, e.Resource = "session-2", "network", "connect", "evil.example:443"
		e.Resolved, e.Rule, e.Reason = bawn.Deny, "", "not on the list"
	}))
	code, out, msg := runAudit(t, state, "query")
	want := "" +
		"TIME                  SESSION    VERDICT  ACTION           RESOURCE          RULE           REASON\n" +
		"2026-09-01 12:00:00Z  s1         allow    filesystem/read  /w/x              policy.toml:3  in the workspace\n" +
		"2026-09-01 12:00:00Z  session-2  deny     network/connect  evil.example:443  -              not on the list\n"
	if code != 0 || out != want || msg != "" {
		t.Errorf("exit code %d, stderr %q, table\n%swant\n%s", code, msg, out, want)
	}
}

func TestAuditQueryFilters(t *testing.T) {
	state := auditLog(t,
		auditEvent(func(e *bawn.Event) { e.Resource = "/r/0" }),
		auditEvent(func(e *bawn.Event) { e.Resource, e.Session = "/r/1", "s2" }),
		auditEvent(func(e *bawn.Event) { e.Resource, e.Agent = "/r/2", "codex" }),
		auditEvent(func(e *bawn.Event) { e.Resource, e.Resolved = "/r/3", bawn.Deny }),
		auditEvent(func(e *bawn.Event) { e.Resource, e.Kind = "/r/4", "tool" }),
		auditEvent(func(e *bawn.Event) { e.Resource, e.Time = "/r/5", time.Now().Add(-30*time.Minute) }))
	for _, c := range []struct{ args, want string }{
		{"", "0 1 2 3 4 5"},
		{"--reverse", "5 4 3 2 1 0"},
		{"--limit 0", "0 1 2 3 4 5"},
		{"--limit 0 --reverse", "5 4 3 2 1 0"},
		{"--limit 2", "4 5"},
		{"--limit 2 --reverse", "5 4"},
		{"--session s2", "1"},
		{"--agent codex", "2"},
		{"--verdict deny", "3"},
		{"--kind tool", "4"},
		{"--resource r/2", "2"},
		{"--resource *2", "2"},
		{"--since 1h", "5"},
		{"--since 1d", "5"},
		{"--since 10m", ""},
		{"--until 2026-09-01T12:00:00Z", ""},
		{"--since 2026-09-01T12:00:00Z --until 2026-09-01T12:00:01Z", "0 1 2 3 4"},
	} {
		code, out, msg := runAudit(t, state, append([]string{"query", "--json"}, strings.Fields(c.args)...)...)
		var got []string
		for line := range strings.Lines(out) {
			var rec struct{ Event bawn.Event }
			if err := json.Unmarshal([]byte(line), &rec); err != nil {
				t.Fatalf("%s: %v", c.args, err)
			}
			got = append(got, strings.TrimPrefix(rec.Event.Resource, "/r/"))
		}
		if code != 0 || strings.Join(got, " ") != c.want {
			t.Errorf("query %s: exit code %d, %q; want %q", c.args, code, got, c.want)
		}
		if limited := strings.Contains(c.args, "--limit 2"); limited != strings.Contains(msg, "the newest 2;") {
			t.Errorf("query %s: stderr %q; want a note exactly where something was left out", c.args, msg)
		}
	}
}

func TestAuditUsage(t *testing.T) {
	state := auditLog(t, auditEvent(nil))
	for _, args := range []string{
		"query --verdict perhaps", "query --since yesterday", "query --until -2h", "query --since -1d", "query --limit -1",
		"query extra", "verify extra", "tail --since 5x", "export --json --csv", "export --until x", "query --since 99999d",
	} {
		code, out, msg := runAudit(t, state, strings.Fields(args)...)
		if code != verb.ExitUsage || out != "" || !strings.HasPrefix(msg, "bawn: error: ") {
			t.Errorf("%s: exit code %d, stdout %q, stderr %q; want a usage error", args, code, out, msg)
		}
	}
	for _, args := range []string{"query", "tail", "verify", "export"} {
		e, read := fileEnv(t, "HOME=")
		cmd := newAuditCommand(e)
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		cmd.SetArgs([]string{args})
		if code := report(e, cmd.Execute(), false); code != verb.ExitUsage {
			_, msg := read()
			t.Errorf("%s without HOME: exit code %d, %q; want %d", args, code, msg, verb.ExitUsage)
		}
	}
}

// TestAuditShowsUntrustedText: nothing an agent writes acts on the terminal,
// hides, or passes for a row or a column of the table.
func TestAuditShowsUntrustedText(t *testing.T) {
	evil := "a\x1b[2J\r\nforged\trow\u202eoedi\u200b\u009b\xff  deny"
	state := auditLog(t, auditEvent(func(e *bawn.Event) {
		e.Session, e.Agent, e.Kind, e.Operation = evil, evil, evil, evil
		e.Resource, e.Rule, e.Reason, e.Args = evil, evil, evil, []string{evil}
		e.Details = map[string]string{evil: evil}
	}))
	shown := `a\x1b[2J\r\nforged\trow\u202eoedi\u200b\u009b\xff`
	for _, args := range []string{"query", "query --json", "export --json", "export --csv", "tail --since 2026-01-01T00:00:00Z --limit 1"} {
		code, out, _ := runAudit(t, state, strings.Fields(args)...)
		if code != 0 || out == "" {
			t.Errorf("%s: exit code %d, %q", args, code, out)
		}
		lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
		for _, line := range lines {
			if strings.ContainsFunc(line, redact.Invisible) {
				t.Errorf("%s: line %q holds an invisible character", args, line)
			}
		}
		if !strings.Contains(args, "json") && (len(lines) != 2 || !strings.Contains(lines[1], shown)) {
			t.Errorf("%s: got %q; want a heading and one row with %q", args, lines, shown)
		}
		if strings.HasPrefix(args, "query") && len(lines) == 2 && strings.Contains(lines[1], "  deny") {
			t.Errorf("%s: %q; a field passes for two columns", args, lines[1])
		}
	}
}

func TestAuditCSV(t *testing.T) {
	exit := -1
	state := auditLog(t, auditEvent(func(e *bawn.Event) {
		e.Resource, e.Reason, e.Args, e.Exit = "=cmd|'/c calc'!A0", "a,\"b\"", []string{"x", "y z"}, &exit
		e.Rule, e.Agent, e.Dir = "@SUM(1)", "+1", "-2+3"
		e.Details = map[string]string{"k": "v"}
	}))
	_, out, _ := runAudit(t, state, "export", "--csv")
	rows, err := csv.NewReader(strings.NewReader(out)).ReadAll()
	if err != nil || len(rows) != 2 {
		t.Fatalf("%q, %v; want a heading and one row", rows, err)
	}
	got := map[string]string{}
	for i, name := range rows[0] {
		got[name] = rows[1][i]
	}
	for name, want := range map[string]string{
		"seq": "1", "timestamp": "2026-09-01T12:00:00Z", "resource": "'=cmd|'/c calc'!A0", "reason": `a,"b"`, "args": `["x","y z"]`,
		"rule": "'@SUM(1)", "agentId": "+1", "dir": "'-2+3", "exit": "-1", "resolved": "allow", "details": `{"k":"v"}`, "ticket": "",
	} {
		if got[name] != want {
			t.Errorf("%s: %q; want %q", name, got[name], want)
		}
	}
	if _, out, _ := runAudit(t, t.TempDir(), "export", "--csv"); strings.Count(out, "\n") != 1 {
		t.Errorf("export of nothing: %q; want the heading", out)
	}
}

func TestAuditVerify(t *testing.T) {
	if code, out, _ := runAudit(t, t.TempDir(), "verify"); code != 0 || out != "audit log is empty\n" {
		t.Errorf("nothing: exit code %d, %q", code, out)
	}
	state := auditLog(t, auditEvent(nil), auditEvent(nil), auditEvent(nil))
	if code, out, _ := runAudit(t, state, "verify"); code != 0 || !strings.HasPrefix(out, "audit log is in order: 3 records, ") {
		t.Errorf("in order: exit code %d, %q", code, out)
	}
	path := filepath.Join(state, "bawn", "audit", "log.jsonl")
	log, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	edited := strings.Replace(string(log), `"seq":2,`, `"seq":9,`, 1)
	if err := os.WriteFile(path, []byte(edited), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, _ := runAudit(t, state, "verify")
	if code != 1 || !strings.HasPrefix(out, "audit log is damaged: line 2: tampered\n") {
		t.Errorf("edited: exit code %d, %q; want 1 and line 2", code, out)
	}
	code, out, _ = runAudit(t, state, "verify", "--json")
	var r audit.Report
	if err := json.Unmarshal([]byte(out), &r); code != 1 || err != nil || r.Fault == nil || r.Fault.Line != 2 || r.Fault.Kind != audit.Tampered {
		t.Errorf("edited: exit code %d, %q, %v; want 1 and line 2", code, out, err)
	}
	for _, args := range []string{"query", "query --limit 0", "export"} {
		code, out, msg := runAudit(t, state, strings.Fields(args)...)
		if code != 1 || strings.Count(out, "policy.toml:3") != 2 || !strings.HasPrefix(msg, "bawn: warning: ") {
			t.Errorf("%s of a damaged log: exit code %d, %q, %q; want two records, a warning and 1", args, code, out, msg)
		}
	}
	if err := errors.Join(os.Remove(path), os.Mkdir(path, 0o700)); err != nil {
		t.Fatal(err)
	}
	for _, args := range []string{"verify", "query", "export", "tail"} {
		if code, _, msg := runAudit(t, state, args); code != verb.ExitInternal || !strings.Contains(msg, "can't be read") {
			t.Errorf("%s of a directory: exit code %d, %q; want %d", args, code, msg, verb.ExitInternal)
		}
	}
}

func TestAuditVerifyLag(t *testing.T) {
	got := describeReport(audit.Report{Records: 3, Lag: 1})
	if !strings.Contains(got, "in order: 3 records") || !strings.Contains(got, "does not count the last 1 yet") {
		t.Errorf("describeReport = %q; want it to tell of the lag", got)
	}
}

func TestAuditTail(t *testing.T) {
	state := auditLog(t, auditEvent(nil), auditEvent(nil))
	code, out, _ := runAudit(t, state, "tail", "--json", "--since", "2026-09-01T00:00:00Z", "--limit", "2")
	if code != 0 || strings.Count(out, "\n") != 2 {
		t.Errorf("exit code %d, %q; want two records", code, out)
	}
}

func TestAuditTableBatches(t *testing.T) {
	var events []bawn.Event
	for i := range 450 {
		events = append(events, auditEvent(func(e *bawn.Event) { e.Resource = strings.Repeat("x", i) }))
	}
	_, out, _ := runAudit(t, auditLog(t, events...), "query", "--limit", "0")
	if n := strings.Count(out, "\n"); n != 451 || strings.Count(out, "TIME") != 1 || !strings.Contains(out, strings.Repeat("x", 449)) {
		t.Errorf("%d lines; want 451 with one heading and nothing cut", n)
	}
}

func TestAuditColours(t *testing.T) {
	state := auditLog(t, auditEvent(nil), auditEvent(func(e *bawn.Event) { e.Resolved = bawn.Deny }),
		auditEvent(func(e *bawn.Event) { e.Resolved = bawn.Ask }))
	if _, out, _ := runAudit(t, state, "query"); strings.Contains(out, "\x1b") {
		t.Errorf("a file gets colours: %q", out)
	}
	for environ, want := range map[string]bool{"TERM=xterm": true, "TERM=dumb": false, "NO_COLOR=1": false} {
		ptmx, tty, err := pty.Open()
		if err != nil {
			t.Fatal(err)
		}
		e := &launch.Env{World: verb.World{Stdout: tty, Stderr: tty, Environ: []string{"XDG_STATE_HOME=" + state, environ}}}
		cmd := newAuditCommand(e)
		cmd.SetArgs([]string{"query"})
		if err := cmd.Execute(); err != nil {
			t.Fatal(err)
		}
		tty.Close()
		out, _ := io.ReadAll(ptmx) // EIO at the end: the terminal was closed
		ptmx.Close()
		for _, code := range []string{"\x1b[31mdeny\x1b[0m", "\x1b[33mask\x1b[0m", "\x1b[32mallow\x1b[0m"} {
			if strings.Contains(string(out), code) != want {
				t.Errorf("%s: got %q; want colours: %v", environ, out, want)
			}
		}
	}
}

// TestAuditClosedOutput: what can't be printed is an error, not a success.
func TestAuditClosedOutput(t *testing.T) {
	state := auditLog(t, auditEvent(nil))
	for _, args := range []string{"query", "query --json", "export --csv", "verify", "tail --json --since 2026-01-01T00:00:00Z"} {
		e, _ := fileEnv(t, "XDG_STATE_HOME="+state)
		e.Stdout.Close()
		cmd := newAuditCommand(e)
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		cmd.SetArgs(strings.Fields(args))
		if err := cmd.Execute(); err == nil {
			t.Errorf("%s to a closed file = nil; want an error", args)
		}
	}
}
