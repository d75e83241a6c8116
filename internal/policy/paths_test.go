package policy

import (
	"fmt"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/testenv/golden"
)

// TestProtectedPaths: no spelling of a protected path gets by, in a command or
// from a file tool. Each has its neighbour that is fine as the control.
func TestProtectedPaths(t *testing.T) {
	links := map[string]string{
		"/home/u/proj/link": "/home/u/.ssh/id_rsa", "/home/u/proj/d/x": "/etc/shadow", "/home/u/proj/up": "/home/u/proj/main.go",
	}
	p := withRules(t, Options{Resolve: func(s string) string {
		if to, ok := links[s]; ok {
			return to
		}
		return s
	}}, rulesOf("a user filesystem allow ||| **", "b user filesystem allow ||| /**")...)
	for _, tt := range []struct {
		line string
		want bawn.Verdict
	}{
		{"cat ~/.ssh/id_rsa", bawn.Deny},
		{"cat ~/ssh/id_rsa", bawn.Allow},
		{"cat ~/.SSH/id_rsa", bawn.Deny},
		{"cat $HOME/.ssh/id_rsa", bawn.Deny},
		{"cat '~/.ssh/id_rsa'", bawn.Deny}, // read as a path, which is rather too strict
		{"cat ../.ssh/id_rsa", bawn.Deny},
		{"cat x/../../.ssh/./id_rsa", bawn.Deny},
		{"cat /home/u/proj/../.ssh//id_rsa", bawn.Deny},
		{"cat /home/other/.ssh/id_rsa", bawn.Deny},
		{"cat /root/.ssh/id_rsa", bawn.Deny},
		{"cat /Users/x/.ssh/id_rsa", bawn.Deny},
		{"cat /proc/self/root/etc/shadow", bawn.Deny},
		{"cat /proc/1/root/proc/self/root/etc/shadow", bawn.Deny},
		{"cat /proc/thread-self/root/home/u/.ssh/x", bawn.Deny},
		{"cat /proc/self/status", bawn.Allow},
		{"cat ~/.s*/id_?sa", bawn.Deny},
		{"cat ~/.[s]sh/id_rsa", bawn.Deny},
		{"cat ~/.{ssh,x}/id_rsa", bawn.Deny},
		{"cat ~/*/id_rsa", bawn.Allow}, // a leading dot is matched by a dot only
		{"cat ~/s*/x", bawn.Allow},
		{"cat /et[c]/shadow", bawn.Deny},
		{"cat /etc/sh*", bawn.Deny},
		{"cat /e*/?hadow", bawn.Deny},
		{"cat /etc/passwd", bawn.Allow},
		{"cat /etc/p*", bawn.Allow},
		{"cat *.go", bawn.Ask},
		{"cat ./*.go", bawn.Allow},
		{"head -c5 < ~/.ssh/id_rsa", bawn.Deny},
		{"cd ~/.ssh && cat id_rsa", bawn.Deny},
		{"cd ~ && cat .ssh/id_rsa", bawn.Deny},
		{"ls ~/.ssh/x", bawn.Deny},
		{"cat link", bawn.Deny},
		{"cat d/x", bawn.Deny},
		{"cat up", bawn.Allow},
		{"touch up", bawn.Ask},
		{"touch link", bawn.Deny},
		{"echo x > link", bawn.Deny},
		{"echo x > /etc/x", bawn.Deny},
		{"echo x >> .git/config", bawn.Deny},
		{"echo x > .GIT/Config", bawn.Deny},
		{"echo x > .git/conf*", bawn.Deny},
		{"cat .git/config", bawn.Allow},
		{"cp x /usr/bin", bawn.Deny},
		{"cp x /System/y", bawn.Ask}, // another system
		{"cat $(x)", bawn.Ask},
		{"cat \"$(ls)\"", bawn.Ask},
		{"ls $(ls)", bawn.Ask},
		{"grep -r x ~", bawn.Ask},
		{"grep -r x /etc", bawn.Ask},
		{"grep -r x /home/other", bawn.Ask},
		{"grep -r x /Users/other", bawn.Ask},
		{"grep -r x /", bawn.Ask},
		{"grep -r x .", bawn.Allow},
		{"grep -r x /opt/x", bawn.Allow},
		{"cat /dev/sda", bawn.Allow}, // allowed by the rules above
		{"echo x > /dev/null", bawn.Allow},
		{"frob ./a:~/.ssh/x", bawn.Deny},
		{"frob 'open(\"/etc/shadow\")'", bawn.Deny},
		{"frob -x /a//b", bawn.Ask},
	} {
		q := ask4(tt.line)
		if d := p.Decide(&q); d.Verdict != tt.want {
			t.Errorf("%q is %v by %q (%s), want %v", tt.line, d.Verdict, d.Rule, d.Reason, tt.want)
		}
	}
}

// TestProtectedOnEachSystem: each has its own directories; where the system is
// not known all of them count.
func TestProtectedOnEachSystem(t *testing.T) {
	for system, want := range map[string][2]bawn.Verdict{"linux": {bawn.Deny, bawn.Ask}, "darwin": {bawn.Ask, bawn.Deny}, "": {bawn.Deny, bawn.Deny}} {
		for i, line := range []string{"touch /usr/x", "touch /System/x"} {
			q := ask4(line)
			q.System = system
			if d := withRules(t, Options{}).Decide(&q); d.Verdict != want[i] {
				t.Errorf("%q on %q: %v by %q, want %v", line, system, d.Verdict, d.Rule, want[i])
			}
		}
	}
}

// fileAction is what a file tool asks.
func fileAction(op bawn.Operation, path string) Question {
	q := ask4("")
	q.Action = bawn.Action{Kind: bawn.Filesystem, Operation: op, Resource: path, Dir: "/home/u/proj"}
	return q
}

func TestFileTools(t *testing.T) {
	p := withRules(t, Options{Resolve: func(s string) string { return strings.ReplaceAll(s, "/proj/link", "/.ssh") }},
		rulesOf("a user filesystem deny | no/**", "b user filesystem allow | /opt/**", "c user filesystem allow | ~/.ssh/**")...)
	for _, tt := range []struct {
		op        bawn.Operation
		path      string
		contained bool
		want      bawn.Verdict
	}{
		{bawn.Read, "main.go", false, bawn.Allow},
		{bawn.Read, "/anywhere", false, bawn.Allow},
		{bawn.Read, "no/x", false, bawn.Deny},
		{bawn.Read, "~/.ssh/x", true, bawn.Deny},
		{bawn.Read, "link/x", true, bawn.Deny},
		{bawn.Read, "/proc/self/root/etc/shadow", true, bawn.Deny},
		{bawn.Read, "", false, bawn.Deny},
		{bawn.Read, "~bob/x", false, bawn.Deny},
		{bawn.Read, "a\x00b", false, bawn.Deny},
		{bawn.Write, "main.go", false, bawn.Ask},
		{bawn.Write, "main.go", true, bawn.Allow},
		{bawn.Create, "x.go", true, bawn.Allow},
		{bawn.Write, ".git/config", true, bawn.Deny},
		{bawn.Create, ".GIT/config", true, bawn.Deny},
		{bawn.Write, "../x", true, bawn.Ask},
		{bawn.Write, "/home/u/proj-evil/x", true, bawn.Ask},
		{bawn.Write, "/tmp/x", true, bawn.Allow},
		{bawn.Write, "/opt/x", true, bawn.Allow},
		{bawn.Write, "/etc/x", true, bawn.Deny},
		{bawn.Delete, "main.go", true, bawn.Ask},
		{bawn.Delete, "/opt/x", true, bawn.Allow},
		{bawn.Exec, "run.sh", false, bawn.Ask},
		{bawn.Exec, "run.sh", true, bawn.Allow},
		{bawn.Connect, "main.go", true, bawn.Deny},
		{bawn.Call, "main.go", true, bawn.Deny},
	} {
		q := fileAction(tt.op, tt.path)
		q.Contained = within(tt.contained)
		if d := p.Decide(&q); d.Verdict != tt.want {
			t.Errorf("%v %q, contained %t: %v by %q (%s), want %v", tt.op, tt.path, tt.contained, d.Verdict, d.Rule, d.Reason, tt.want)
		}
	}
}

func TestHostsAndTools(t *testing.T) {
	p := withRules(t, Options{}, rulesOf("a user network allow | *.good.example:443", "b user network deny || bad.good.example", "c user network allow | localhost",
		"d user tool allow | Read", "e user tool allow | mcp__x__*", "f user tool deny || mcp__x__delete")...)
	for _, tt := range []struct {
		kind     bawn.Kind
		op       bawn.Operation
		resource string
		mode     bawn.Mode
		want     bawn.Verdict
	}{
		{bawn.Network, bawn.Connect, "a.good.example:443", bawn.ModeNormal, bawn.Allow},
		{bawn.Network, bawn.Connect, "https://A.Good.example/x", bawn.ModeNormal, bawn.Allow},
		{bawn.Network, bawn.Connect, "a.good.example:80", bawn.ModeNormal, bawn.Ask},
		{bawn.Network, bawn.Connect, "bad.good.example:443", bawn.ModeNormal, bawn.Deny},
		{bawn.Network, bawn.Connect, "a.good.example.evil.example:443", bawn.ModeNormal, bawn.Ask},
		{bawn.Network, bawn.Connect, "evilgood.example:443", bawn.ModeNormal, bawn.Ask},
		{bawn.Network, bawn.Connect, "localhost:3000", bawn.ModeNormal, bawn.Allow},
		{bawn.Network, bawn.Connect, "x.example", bawn.ModePermissive, bawn.Ask},
		{bawn.Network, bawn.Connect, "169.254.169.254", bawn.ModePermissive, bawn.Ask},
		{bawn.Network, bawn.Connect, "2130706433", bawn.ModePermissive, bawn.Ask},
		{bawn.Network, bawn.Connect, "x.example", bawn.ModePlan, bawn.Deny},
		{bawn.Network, bawn.Read, "a.good.example:443", bawn.ModeNormal, bawn.Deny},
		{bawn.Tool, bawn.Call, "Read", bawn.ModeNormal, bawn.Allow},
		{bawn.Tool, bawn.Call, "read", bawn.ModeNormal, bawn.Ask},
		{bawn.Tool, bawn.Call, "mcp__x__list", bawn.ModeNormal, bawn.Allow},
		{bawn.Tool, bawn.Call, "mcp__x__delete", bawn.ModeNormal, bawn.Deny},
		{bawn.Tool, bawn.Call, "other", bawn.ModePermissive, bawn.Ask},
		{bawn.Tool, bawn.Call, "mcp__x__\u202elist", bawn.ModeNormal, bawn.Deny},
		{bawn.Tool, bawn.Call, "Read", bawn.ModePlan, bawn.Deny},
		{bawn.Tool, bawn.Call, "Read", bawn.ModeStrict, bawn.Ask},
		{bawn.Tool, bawn.Exec, "Read", bawn.ModeNormal, bawn.Deny},
		{99, bawn.Call, "Read", bawn.ModeNormal, bawn.Deny},
		{bawn.Tool, bawn.Call, "Read", 99, bawn.Deny},
	} {
		q := ask4("")
		q.Action = bawn.Action{Kind: tt.kind, Operation: tt.op, Resource: tt.resource}
		q.Mode = tt.mode
		if tt.mode == bawn.ModePermissive {
			q.Autonomy = bawn.AutonomyFull
		}
		if d := p.Decide(&q); d.Verdict != tt.want {
			t.Errorf("%v %v %q in %v mode: %v by %q (%s), want %v", tt.kind, tt.op, tt.resource, tt.mode, d.Verdict, d.Rule, d.Reason, tt.want)
		}
	}
}

// TestWorkspaceThatIsNone: one that holds the home directory, or is the root,
// makes nothing harmless.
func TestWorkspaceThatIsNone(t *testing.T) {
	for workspace, want := range map[string]bool{"/home/u/proj": true, "": false, "/": false, "/home/u": false, "/home": false} {
		q := Question{Workspace: workspace, Home: "/home/u"}
		if got := q.inWorkspace("/home/u/proj/x"); got != want {
			t.Errorf("workspace %q: %t, want %t", workspace, got, want)
		}
	}
	q := Question{Home: "/home/u"}
	for p, want := range map[string]bawn.Verdict{"/dev/null": bawn.Allow, "/dev/fd/3": bawn.Allow, "/dev/sda": bawn.Ask, "/tmp/x": bawn.Allow, "/tmp": bawn.Ask, "/var/tmp/x": bawn.Allow, "/var/tmp": bawn.Ask, "/x": bawn.Ask} {
		if v, _ := q.pathDefault(use{verb: writes, path: p}); v != want {
			t.Errorf("writing %s is %v, want %v", p, v, want)
		}
	}
}

// TestOverlap: a pattern of the shell and a protected one; what can be the
// same path is.
func TestOverlap(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want bool
	}{
		{"/a/b", "/a/b", true}, {"/a/b", "/a", false}, {"/a", "/a/b", false}, {"/a/**", "/a/x/y", true}, {"/a/**", "/a", true}, {"/**/x", "/a/b/*", true}, {"/a/**", "/b/*", false},
		{"/a/b", "/a/*", true}, {"/a/.b", "/a/*", false}, {"/a/.b", "/a/.*", true}, {"/a/b*", "/a/*", true}, {"/a/b*", "/a/c*", false}, {"/a/bc", "/a/b[x]", true}, {"/a/bc", "/a/x[x]", false},
		{"/a/bc", "/a/b?", true}, {"/a/bc", "/a/?", false}, {"/a/b*", "/a/bc", true}, {"/a/b*", "/a/c", false}, {"/a/bc", "/a/*\\", true},
	} {
		if got := overlap(strings.Split(tt.a, "/"), strings.Split(tt.b, "/")); got != tt.want {
			t.Errorf("%s and %s: %t, want %t", tt.a, tt.b, got, tt.want)
		}
	}
}

// TestIndexStops: a callback that returns false gets no further entries.
func TestIndexStops(t *testing.T) {
	x := newIndex[string](0)
	for _, p := range []string{"/a/**", "**", "*/*", "/a/b", "~/./*", "x/a/?", "/c", "a"} {
		x.add(p, p)
	}
	for stop, want := range map[string]string{"": "** */* ~/./* /a/** x/a/? a /a/b", "x/a/?": "** */* ~/./* /a/** x/a/?", "**": "**", "/a/**": "** */* ~/./* /a/**"} {
		var got []string
		x.each("/a/b", func(p string) bool {
			got = append(got, p)
			return p != stop
		})
		if strings.Join(got, " ") != want {
			t.Errorf("until %q: %q, want %q", stop, got, want)
		}
	}
}

// TestRiskGolden shows the score of auto mode with its parts as the trace
// tells them.
func TestRiskGolden(t *testing.T) {
	var b strings.Builder
	p := withRules(t, Options{})
	for _, line := range []string{"cat x", "touch x", "make", "gh pr list", "git fetch", "git push", "docker build .", "rm x"} {
		for _, contained := range []bool{false, true} {
			for _, taint := range []Taint{{}, {Untrusted: true}, {Private: true}, {true, true}} {
				q := ask4(line)
				q.Mode, q.Contained, q.Taint = bawn.ModeAuto, within(contained), taint
				d := p.Decide(&q)
				fmt.Fprintf(&b, "%s | contained %t, untrusted %t, private %t | %v | %s\n", line, contained, taint.Untrusted, taint.Private, d.Verdict, d.Trace[1].Why)
			}
		}
	}
	golden.Compare(t, "testdata/risk.golden", b.String())
}

// TestFlowGolden: what each autonomy makes
// of each mode, for an action of each class.
func TestFlowGolden(t *testing.T) {
	var b strings.Builder
	p := withRules(t, Options{})
	lines := []struct{ class, line string }{{"read-only", "cat x"}, {"remote", "git push"}, {"local", "touch x"}, {"builds", "make"}, {"destructive", "rm x"}, {"outside", "docker build ."}, {"unknown", "frob"}, {"dangerous", "rm -r x"}, {"protected", "cat ~/.ssh/x"}, {"opaque", "let x"}}
	for _, l := range lines {
		for _, contained := range []bool{false, true} {
			fmt.Fprintf(&b, "%s (%s), contained %t\n", l.class, l.line, contained)
			for a := bawn.AutonomyNone; a <= bawn.AutonomyFull+1; a++ {
				row := fmt.Sprintf("  %d %-8v", a, a)
				for m := bawn.ModePlan; m <= bawn.ModePermissive+1; m++ {
					q := ask4(l.line)
					q.Mode, q.Autonomy, q.Contained = m, a, within(contained)
					row += fmt.Sprintf(" %v:%-6v", m, p.Decide(&q).Verdict)
				}
				b.WriteString(strings.TrimRight(row, " ") + "\n")
			}
		}
	}
	golden.Compare(t, "testdata/flow.golden", b.String())
}
