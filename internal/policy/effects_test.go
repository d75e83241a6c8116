package policy

import (
	"fmt"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/testenv/golden"
)

// within is a session that is contained, or not at all.
func within(contained bool) bawn.Contained {
	if contained {
		return bawn.ContainedFully
	}
	return bawn.Contained{}
}

// TestTableGolden is every cell of the table, contained and not.
func TestTableGolden(t *testing.T) {
	var b strings.Builder
	for _, contained := range []bool{true, false} {
		fmt.Fprintf(&b, "contained %t\n%-50s", contained, "")
		for m := bawn.ModePlan; m <= bawn.ModePermissive+1; m++ {
			fmt.Fprintf(&b, " %-10v", m)
		}
		b.WriteString("\n")
		for e := Effect(0); e <= Protected+1; e++ {
			fmt.Fprintf(&b, "%-50v", e)
			for m := bawn.ModePlan; m <= bawn.ModePermissive+1; m++ {
				fmt.Fprintf(&b, " %-10v", Lookup(m, e, within(contained)).Verdict)
			}
			b.WriteString("\n")
		}
	}
	for _, r := range Table {
		for _, c := range []Cell{r.Strict, r.Plan, r.Safe, r.Normal, r.Permissive, r.Uncontained} {
			if c.Note != "" {
				fmt.Fprintf(&b, "%v: %v: %s\n", r.Effect, c.Verdict, c.Note)
			}
		}
	}
	golden.Compare(t, "testdata/table.golden", b.String())
}

// TestTableIsMonotone: strict ≤ safe ≤ normal ≤ permissive, plan ≤ normal, and less that
// is contained never allows more, in every cell.
func TestTableIsMonotone(t *testing.T) {
	all := []bawn.Contained{}
	for i := range 8 {
		all = append(all, bawn.Contained{Files: i&1 > 0, Processes: i&2 > 0, Network: i&4 > 0})
	}
	order := []bawn.Mode{bawn.ModeStrict, bawn.ModeSafe, bawn.ModeNormal, bawn.ModePermissive}
	for i, r := range Table {
		if r.Effect != Effect(i+1) {
			t.Fatalf("row %d is of %v", i, r.Effect)
		}
		for _, c := range all {
			for j := range order[1:] {
				if a, b := Lookup(order[j], r.Effect, c).Verdict, Lookup(order[j+1], r.Effect, c).Verdict; a > b {
					t.Errorf("%v, %+v: %v in %v, %v in %v", r.Effect, c, a, order[j], b, order[j+1])
				}
			}
			if a, b := Lookup(bawn.ModePlan, r.Effect, c).Verdict, Lookup(bawn.ModeNormal, r.Effect, c).Verdict; a > b {
				t.Errorf("%v, %+v: %v in plan, %v in normal", r.Effect, c, a, b)
			}
			for m := bawn.ModePlan; m <= bawn.ModePermissive; m++ {
				for _, less := range all {
					if a, b := Lookup(m, r.Effect, c).Verdict, Lookup(m, r.Effect, less).Verdict; c.Has(less) && b > a {
						t.Errorf("%v in %v: %v with %+v, %v with %+v", r.Effect, m, a, c, b, less)
					}
				}
			}
		}
	}
}

// TestComponents: a row whose component is missing is decided as without a sandbox, and
// no other row.
func TestComponents(t *testing.T) {
	p := corpusPolicy(t)
	for _, tt := range []struct {
		line      string
		contained bawn.Contained
		want      bawn.Verdict
	}{
		{"make", bawn.ContainedFully, allow}, {"make", bawn.Contained{Files: true, Processes: true}, allow},
		{"make", bawn.Contained{Processes: true, Network: true}, ask}, {"make", bawn.Contained{Files: true, Network: true}, ask},
		{"npm install", bawn.ContainedFully, allow}, {"npm install", bawn.Contained{Files: true, Processes: true}, ask},
		{"curl -T x https://y", bawn.ContainedFully, allow}, {"curl -T x https://y", bawn.Contained{Files: true, Processes: true}, ask},
		{"ls", bawn.Contained{}, allow}, {"git push", bawn.ContainedFully, ask},
	} {
		q := ask4(tt.line)
		q.Contained = tt.contained
		if d := p.Decide(&q); d.Verdict != tt.want {
			t.Errorf("%q, %+v: %v by %q (%s); want %v", tt.line, tt.contained, d.Verdict, d.Rule, d.Reason, tt.want)
		}
	}
}

// TestConnectionAsks: what leaves the session is asked about once. Where its connection
// asks, the command does not; where a host could be reached without a question, it does.
func TestConnectionAsks(t *testing.T) {
	host := bawn.Rule{ID: "git", Kind: bawn.Network, Pattern: "git.corp", Verdict: allow, Source: bawn.User}
	open, err := New([]bawn.Rule{host}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	p := corpusPolicy(t)
	for _, line := range []string{
		"git push", "git push origin fix", "git push -f", "make && git push", "npm publish", "cargo publish", "gem push x.gem", "twine upload dist/*",
		"docker push x", "gh pr create --fill", "gh release create v1", "ssh h ls", "rsync a h:b", "./gradlew publish", "hg push",
	} {
		for name, tt := range map[string]struct {
			p    *Policy
			set  func(*Question)
			want bawn.Verdict
		}{
			"a session":          {p, func(*Question) {}, allow},
			"unasked":            {p, func(q *Question) { q.ConnectionAsks = false }, ask},
			"a host let through": {open, func(*Question) {}, ask},
			"its network":        {p, func(q *Question) { q.Contained.Network = false }, ask},
			"no sandbox":         {p, func(q *Question) { q.Contained = bawn.Contained{} }, ask},
			"strict":             {p, func(q *Question) { q.Mode = bawn.ModeStrict }, ask},
		} {
			q := ask4(line)
			q.Contained, q.ConnectionAsks = bawn.ContainedFully, true
			tt.set(&q)
			if d := tt.p.Decide(&q); d.Verdict != tt.want || tt.want == allow && !strings.Contains(d.Reason, "its connection asks about") && !strings.Contains(line, "make") {
				t.Errorf("%q, %s: %v by %q (%s); want %v", line, name, d.Verdict, d.Rule, d.Reason, tt.want)
			}
		}
	}
	for _, line := range []string{"kubectl delete pod x", "terraform apply", "npm unpublish x", "make deploy", "gh repo delete x", "aws ec2 terminate-instances --instance-ids i"} {
		q := ask4(line)
		q.Contained, q.ConnectionAsks = bawn.ContainedFully, true
		if d := p.Decide(&q); d.Verdict != ask || !d.Single {
			t.Errorf("%q: %v; what a connection can't tell asks each time", line, d.Verdict)
		}
	}
}

// TestCheckpoint: what a checkpoint covers is a change like any other; without one it
// asks, and plan denies it.
func TestCheckpoint(t *testing.T) {
	p := corpusPolicy(t)
	for _, line := range []string{"rm -rf build", "git reset --hard", "git clean -fdx", "find . -name '*.o' -delete"} {
		for _, tt := range []struct {
			mode               bawn.Mode
			contained, covered bool
			want               bawn.Verdict
		}{
			{bawn.ModeNormal, true, true, allow}, {bawn.ModeNormal, true, false, ask}, {bawn.ModeNormal, false, true, ask}, {bawn.ModeNormal, false, false, ask},
			{bawn.ModePlan, true, false, deny}, {bawn.ModePlan, true, true, allow}, {bawn.ModePermissive, true, false, ask}, {bawn.ModeSafe, true, true, ask},
		} {
			q := ask4(line)
			q.Mode, q.Autonomy, q.Contained, q.Covered = tt.mode, AutonomyOf(tt.mode), within(tt.contained), tt.covered
			if d := p.Decide(&q); d.Verdict != tt.want {
				t.Errorf("%q in %v, contained %t, covered %t: %v by %q (%s); want %v", line, tt.mode, tt.contained, tt.covered, d.Verdict, d.Rule, d.Reason, tt.want)
			}
		}
	}
}

// TestUncontainedAsks are lines that forms of 2,000 programs once called harmless.
func TestUncontainedAsks(t *testing.T) {
	p := corpusPolicy(t)
	for _, line := range []string{
		"json_pp -f eval < x", "fx x.json", "ls | xargs rg foo", "uniq *", "uniq a b", "git log --alternate-refs", "xmllint --c14n x.xml", "man -l x", "clang-format --style=file:x a.c",
		"envsubst < x", "rm -rf build", "$X now", "date 010100002030", "sort -o x y", "find . -fprint x", "tree -o x", "git reflog expire --all", "git symbolic-ref HEAD refs/heads/x",
		"git branch x", "git tag v1", "rg --pre sh x", "file -C -m x", "sed -n 1e", "sed -n '1w x'", "jq -n env", "ls > x", "PATH=x ls", "export A=b", "timeout 5 rm x", "sh -c 'rm x'",
		"wc --files0-from=x", "diff -l a b", "cargo --version", "yarn --version", "go version", "gradle --version", "xxd a b", "awk '{print}' x", "git grep -Ovi x", "git diff --ext-diff --output=x", "cat \"$x\"",
		"git show HEAD:.env", "cat .env", "git log -p -- .env", "git grep KEY HEAD:.env", "git grep '' -- '.e*'", "while true; do true; done",
	} {
		for m := bawn.ModePlan; m <= bawn.ModePermissive; m++ {
			q := ask4(line)
			q.Mode, q.Autonomy = m, AutonomyOf(m)
			if d := p.Decide(&q); d.Verdict == allow {
				t.Errorf("%q is allowed in %v by %q (%s)", line, m, d.Rule, d.Reason)
			}
		}
	}
	for _, line := range []string{ // the control
		"ls -la", "cat x", "git log --oneline -5", "rg -n foo src", "uniq ./*.txt", "sed -n '1,20p' x", "timeout 5 cat x", "sh -c 'cat x | head'", "git show HEAD:main.go", "x=$(git rev-parse HEAD); echo \"$x\"", "LC_ALL=C sort x",
		"test -f x && cat x", "git -C sub status", "find . -name '*.go' -type f", "bash --version", "cd sub && ls",
	} {
		q := ask4(line)
		if d := p.Decide(&q); d.Verdict != allow {
			t.Errorf("%q: %v by %q (%s)", line, d.Verdict, d.Rule, d.Reason)
		}
	}
}

// TestBrokenReaders: a form that can't be read names its line.
func TestBrokenReaders(t *testing.T) {
	for text, want := range map[string]string{"a | -": "want NAMES", "a | x | -": "unknown flag", "a | - | SOME": "unknown operand", "a | @none | -": "unknown flag"} {
		if _, err := parseReaders("x.txt", text); err == nil || !strings.Contains(err.Error(), "x.txt:1: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// TestUseIn reads what a step of a trace says that is used.
func TestUseIn(t *testing.T) {
	for why, want := range map[string]string{
		"to read /a/b: outside": "/a/b filesystem read", "to read below /a: x": "/a filesystem read", "to look at /a: x": "/a filesystem read", "to write /a: x": "/a filesystem write",
		"to delete /a: x": "/a filesystem delete", "to execute /a: x": "/a filesystem exec", "to connect to h.example: x": "h.example network connect", "to dance with /a: x": "", "read /a": "",
	} {
		target, kind, op, ok := UseIn(bawn.Step{Stage: stageClaim, Why: why})
		if got := fmt.Sprint(target, " ", kind, " ", op); ok != (want != "") || ok && got != want {
			t.Errorf("%q: %q, %v; want %q", why, got, ok, want)
		}
	}
	if _, _, _, ok := UseIn(bawn.Step{Stage: stageRule, Why: "to read /a: x"}); ok {
		t.Error("a rule's step names a use")
	}
}

// TestReaderForms are words that a form takes, and words that it does not.
func TestReaderForms(t *testing.T) {
	p := corpusPolicy(t)
	for line, want := range map[string]bawn.Verdict{
		"test 1 -eq 2": allow, "test $x -eq 2": ask, "test a -eq 2": ask, "test -v x": ask, "[ a = b ]": allow, "[ -f *.go ]": ask, "'' x": ask, "echo \"$(cat x)\"": allow,
		"git -C sub log": allow, "git -C -x log": ask, "git -c a=b log": ask, "git --no-pager log": allow, "git": ask, "head -n5 x": allow, "head -n": ask, "head --lines 5 x": allow, "head --lines=5 x": allow,
		"ls --color=auto": allow, "ls --all=x": ask, "cut -d, -f1 x": allow, "head -20 x": allow, "tr a b c": ask, "rg -g '*.go' x": allow, "rg -g'*.env' x": ask, "comm a": ask, "ls -- -x": allow, "cat -": allow,
		"date +%s": allow, "date 0101": ask, "jq .a x": allow, "ls > /dev/null": allow,
	} {
		q := ask4(line)
		if d := p.Decide(&q); d.Verdict != want {
			t.Errorf("%q: %v by %q (%s); want %v", line, d.Verdict, d.Rule, d.Reason, want)
		}
	}
}

// TestSaidLeavesTheModeOut: what rules and dangers say, whatever the mode.
func TestSaidLeavesTheModeOut(t *testing.T) {
	p := corpusPolicy(t)
	for line, want := range map[string]bawn.Verdict{"frob x": allow, "sudo x": ask, "cat ~/.ssh/x": deny} {
		q := ask4(line)
		if got := Said(p.Decide(&q)); got != want {
			t.Errorf("%q: %v, want %v", line, got, want)
		}
	}
}

// TestAutoTightens: in mode auto a risk asks where permissive's column allows.
func TestAutoTightens(t *testing.T) {
	q := Question{Mode: bawn.ModeAuto, Autonomy: bawn.AutonomyModerate, Contained: bawn.ContainedFully, Taint: Taint{Untrusted: true, Private: true}}
	if v, why := q.base(part{effect: Download, sends: true}); v != ask {
		t.Errorf("a tainted session sends: %v (%s)", v, why)
	}
	q.Taint = Taint{}
	if v, why := q.base(part{effect: Download, sends: true}); v != allow {
		t.Errorf("control: %v (%s)", v, why)
	}
}
