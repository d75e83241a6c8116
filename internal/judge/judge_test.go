package judge

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/approval"
	"github.com/bawn-dev/bawn/internal/approval/asking"
	"github.com/bawn-dev/bawn/internal/guard"
	"github.com/bawn-dev/bawn/internal/intent"
	"github.com/bawn-dev/bawn/internal/policy"
	"github.com/bawn-dev/bawn/internal/policy/overlay"
	"github.com/bawn-dev/bawn/internal/sessionsocket"
)

// kept is a log in memory, which may fail.
type kept struct {
	events []bawn.Event
	err    error
}

func (k *kept) Record(_ context.Context, e bawn.Event) error {
	k.events = append(k.events, e)
	return k.err
}

// yes is a relay at which the human says yes to everything, once.
type yes struct {
	approval.Prompter
	asked int
}

func (y *yes) Ask(context.Context, approval.Question) (bawn.Answer, error) {
	y.asked++
	return bawn.Answer{Verdict: bawn.Allow, Scope: bawn.Once, By: "test"}, nil
}

// TestJudgeAhead lets a yes that was given to a hook hold for what is executed
// then, and for nothing after that. Without what executes it, nothing is kept.
func TestJudgeAhead(t *testing.T) {
	push := []intent.Act{act(bawn.Command, bawn.Exec, "git  push --force")}
	ahead := intent.Judge{Dir: "/p", Actions: push, Mayask: true, Ahead: true}
	now := intent.Judge{Dir: "/p", Actions: push, Mayask: true, Contained: true}
	for _, twice := range []bool{true, false} {
		human := &yes{}
		j, _ := newTestJudge(t, bawn.ModeNormal)
		j.Twice = twice
		j.Prompter = asking.New(asking.Options{Session: "s", Relay: func(context.Context, bool) (approval.Prompter, error) { return human, nil }})
		t.Cleanup(j.Prompter.Close)
		want := []int{1, 1, 2}
		if !twice {
			want = []int{1, 2, 3}
		}
		for i, m := range []intent.Judge{ahead, now, now} {
			actions, err := j.Read(&m)
			if err != nil {
				t.Fatal(err)
			}
			if v := j.Verdict(t.Context(), &m, actions); v.Verdict != "allow" || human.asked != want[i] {
				t.Errorf("twice %v, call %d: got %+v after %d questions, want %d", twice, i, v, human.asked, want[i])
			}
		}
	}
}

// newTestJudge is that of a session whose workspace is /p and that may also
// write /state; nobody is there to be asked.
func newTestJudge(t *testing.T, mode bawn.Mode) (*Judge, *kept) {
	t.Helper()
	rules := []bawn.Rule{{ID: "test:1", Kind: bawn.Network, Pattern: "evil.example", Verdict: bawn.Deny, Source: bawn.User, Reason: "no"},
		{ID: "test:2", Kind: bawn.Tool, Pattern: "x/evil", Verdict: bawn.Deny, Source: bawn.User, Reason: "no"}}
	prompter := asking.New(asking.Options{Session: "s", Agent: "a", Rules: func() ([]bawn.Rule, error) { return rules, nil }})
	t.Cleanup(prompter.Close)
	log := &kept{}
	zone := asking.Zone{Question: policy.Question{Mode: mode, Autonomy: policy.AutonomyOf(mode), Contained: bawn.ContainedFully, Workspace: "/p", Home: "/home/u", System: "linux"}}
	files, hosts := zone, zone
	files.Decide = overlay.Places([]bawn.Mount{{Path: "/state/settings", Access: bawn.ReadOnly}, {Path: "/state", Access: bawn.ReadWrite}, {Path: "/p", Access: bawn.ReadWrite}, {Path: "/", Access: bawn.ReadOnly}})
	hosts.Decide = overlay.Later
	return &Judge{
		Session: bawn.Session{ID: "s", Agent: "a"}, Guard: guard.Guard{Recorder: log}, Prompter: prompter, Now: time.Now,
		Zones: map[bawn.Kind]asking.Zone{bawn.Command: zone, bawn.Filesystem: files, bawn.Network: hosts, bawn.Tool: zone},
	}, log
}

func act(kind bawn.Kind, op bawn.Operation, resource string, args ...string) intent.Act {
	return intent.Act{Kind: kind.String(), Operation: op.String(), Resource: resource, Args: args}
}

// TestJudge decides what a session's guests want, where nobody is asked.
func TestJudge(t *testing.T) {
	command := func(text string) intent.Judge {
		return intent.Judge{Dir: "/p", Actions: []intent.Act{act(bawn.Command, bawn.Exec, text)}}
	}
	file := func(op bawn.Operation, path string) intent.Judge {
		return intent.Judge{Dir: "/p", Actions: []intent.Act{act(bawn.Filesystem, op, path)}}
	}
	behind := func(tool string, resources ...string) intent.Judge {
		m := intent.Judge{Dir: "/p", Tool: tool}
		for _, r := range resources {
			m.Actions = append(m.Actions, act(bawn.Tool, bawn.Call, r))
		}
		return m
	}
	contained := func(m intent.Judge) intent.Judge { m.Contained = true; return m }
	for name, test := range map[string]struct {
		mode      bawn.Mode
		m         intent.Judge
		allowed   bool
		rule      string
		canonical string
	}{
		"looks":                          {bawn.ModeNormal, command("ls   -l"), true, "builtin:default", "ls -l"},
		"a comment":                      {bawn.ModeNormal, command("# nothing"), true, "builtin:default", ":"},
		"unknown":                        {bawn.ModeNormal, command("no-such-program"), true, "builtin:default", "no-such-program"},
		"unknown, left to the sandbox":   {bawn.ModeNormal, contained(command("no-such-program")), true, "builtin:default", "no-such-program"},
		"dangerous all the same":         {bawn.ModeNormal, contained(command("git push --force")), false, guard.RuleApproval, ""},
		"with a variable":                {bawn.ModeNormal, contained(command("no-such-program $AWS_SECRET_ACCESS_KEY")), true, "builtin:default", "no-such-program $AWS_SECRET_ACCESS_KEY"},
		"in another's words":             {bawn.ModeNormal, contained(command("no-such-program; git push --force")), false, guard.RuleApproval, ""},
		"opaque, inside":                 {bawn.ModeNormal, contained(command("$X")), true, "builtin:opaque", "$X"},
		"denied all the same":            {bawn.ModeNormal, contained(command("cat /home/u/.ssh/id_rsa")), false, "", ""},
		"strict all the same":            {bawn.ModeStrict, contained(command("no-such-program")), false, guard.RuleApproval, ""},
		"not to be parsed":               {bawn.ModeNormal, command("echo 'x"), false, sessionsocket.RuleText, ""},
		"writes the workspace":           {bawn.ModeNormal, file(bawn.Write, "a"), true, "builtin:default", ""},
		"writes what is open to it":      {bawn.ModeNormal, file(bawn.Write, "/state/x"), true, "builtin:path", ""},
		"writes what is not":             {bawn.ModeNormal, file(bawn.Write, "/opt/x"), false, "builtin:path", ""},
		"nor the deeper place":           {bawn.ModeNormal, file(bawn.Write, "/state/settings"), false, "builtin:path", ""},
		"strict asks":                    {bawn.ModeStrict, file(bawn.Write, "/state/x"), false, guard.RuleApproval, ""},
		"a key":                          {bawn.ModeNormal, file(bawn.Read, "~/.ssh/x"), false, "builtin:ssh", ""},
		"a host is asked about later":    {bawn.ModeNormal, intent.Judge{Dir: "/p", Actions: []intent.Act{act(bawn.Network, bawn.Connect, "example.org:443")}}, true, overlay.RuleLater, ""},
		"a denied host is not":           {bawn.ModeNormal, intent.Judge{Dir: "/p", Actions: []intent.Act{act(bawn.Network, bawn.Connect, "evil.example:443")}}, false, "", ""},
		"a tool":                         {bawn.ModeNormal, intent.Judge{Dir: "/p", Actions: []intent.Act{act(bawn.Tool, bawn.Call, "x/y")}}, false, guard.RuleApproval, ""},
		"one of the gateway's":           {bawn.ModeNormal, behind("mcp__bawn__x__y", "x/y"), true, overlay.RuleLater, ""},
		"a denied one of the gateway's":  {bawn.ModeNormal, behind("mcp__bawn__x__evil", "x/evil"), false, "", ""},
		"one that plays the gateway's":   {bawn.ModeNormal, behind("mcp__bawn__x__y", "z/y"), false, guard.RuleApproval, ""},
		"one more beside the gateway's":  {bawn.ModeNormal, behind("mcp__bawn__x__y", "x/y", "z/y"), false, guard.RuleApproval, ""},
		"one of another server's":        {bawn.ModeNormal, behind("mcp__x__y", "x/y"), false, guard.RuleApproval, ""},
		"the gateway's in a narrow mode": {bawn.ModePlan, behind("mcp__bawn__x__y", "x/y"), false, "", ""},
		"one of two": {bawn.ModeNormal, intent.Judge{Dir: "/p", Actions: []intent.Act{
			act(bawn.Filesystem, bawn.Read, "a"), act(bawn.Filesystem, bawn.Write, "/opt/x"),
		}}, false, "builtin:path", ""},
	} {
		j, log := newTestJudge(t, test.mode)
		actions, err := j.Read(&test.m)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		v := j.Verdict(t.Context(), &test.m, actions)
		if got := v.Verdict == "allow"; got != test.allowed || test.rule != "" && v.Rule != test.rule || v.Canonical != test.canonical {
			t.Errorf("%s: got %+v, want %v by %q, %q", name, v, test.allowed, test.rule, test.canonical)
		}
		if len(log.events) == 0 || log.events[0].Session != "s" {
			t.Errorf("%s: recorded %+v", name, log.events)
		}
	}
}

// TestJudgeIsNotRecorded fails to record: nothing is allowed, nor told.
func TestJudgeIsNotRecorded(t *testing.T) {
	for name, m := range map[string]intent.Judge{
		"before": {Dir: "/p", Actions: []intent.Act{act(bawn.Command, bawn.Exec, "ls")}},
		"after":  {Dir: "/p", Seen: "PostToolUse"},
	} {
		for _, broken := range []error{nil, errors.New("full")} {
			j, log := newTestJudge(t, bawn.ModeNormal)
			log.err = broken
			actions, err := j.Read(&m)
			if err != nil {
				t.Fatal(err)
			}
			if v := j.Verdict(t.Context(), &m, actions); (v.Verdict == "allow") != (broken == nil) {
				t.Errorf("%s, the log says %v: got %+v", name, broken, v)
			}
		}
	}
}

// TestJudgeReads refuses what no honest guest sends.
func TestJudgeReads(t *testing.T) {
	j, _ := newTestJudge(t, bawn.ModeNormal)
	ls := act(bawn.Command, bawn.Exec, "ls")
	for name, m := range map[string]intent.Judge{
		"nothing": {Dir: "/p"}, "nowhere": {Actions: []intent.Act{ls}}, "a relative place": {Dir: "p", Actions: []intent.Act{ls}}, "..": {Dir: "/p/..", Actions: []intent.Act{ls}},
		"a NUL in it": {Dir: "/p\x00", Actions: []intent.Act{ls}}, "too many": {Dir: "/p", Actions: make([]intent.Act, intent.MaxActs+1)},
		"no kind": {Dir: "/p", Actions: []intent.Act{{Operation: "exec", Resource: "ls"}}}, "no operation": {Dir: "/p", Actions: []intent.Act{{Kind: "command", Resource: "ls"}}},
		"nothing to it": {Dir: "/p", Actions: []intent.Act{act(bawn.Command, bawn.Exec, "")}}, "a NUL": {Dir: "/p", Actions: []intent.Act{act(bawn.Command, bawn.Exec, "ls\x00rm")}},
		"a NUL in a word": {Dir: "/p", Actions: []intent.Act{act(bawn.Command, bawn.Exec, "ls", "ls", "a\x00b")}},
	} {
		if actions, err := j.Read(&m); err == nil {
			t.Errorf("%s: got %+v", name, actions)
		}
	}
	if _, err := j.Read(&intent.Judge{Dir: "/p", Actions: []intent.Act{ls}}); err != nil {
		t.Errorf("control: %v", err)
	}
	if got := named(strings.Repeat("é", maxNamed), maxNamed); len(got) > maxNamed+len(" [cut]") {
		t.Errorf("got %d bytes", len(got))
	}
}
