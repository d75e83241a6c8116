package policy

import (
	"testing"

	"github.com/bawn-dev/bawn"
)

// permitsTests are lines beside rules that allow. What the pattern does not
// name word by word is not what the human said.
var permitsTests = []struct {
	pattern, line string
	want          bool
}{
	{"git log *", "git log", true},
	{"git log *", "git log --stat -n 3", true},
	{"git log *", "git -C sub log", true},
	{"git log *", "git -C log log", true},
	{"git log *", "git -c core.pager=evil log", false},
	{"git log *", "git --exec-path=/x log", false},
	{"git log *", "/proj/bin/git log", false},
	{"docker ps *", "docker -H tcp://evil ps", false},
	{"make -n *", "make -n all", true},
	{"make -n *", "make -fnasty.mk", false},
	{"make -n *", "make -Bn", false},
	{"foo run *", "foo run x", true},
	{"foo run *", "foo evil run", false},
	{"foo run *", "foo --config=evil run", false},
	{"foo push --force-with-lease *", "foo push --force", false},
	{"foo --target=dev *", "foo --target=prod", false},
	{"npm run test:unit *", "npm run test:unit -- --watch", true},
	{"npm run test:unit *", "npm run evil test:unit", false},
	{"npm run test:unit *", "npm run -w evil test:unit", false},
	{"tar -x -f a.tar", "tar -x -f a.tar", true},
	{"tar -x -f a.tar", "tar -xf a.tar y", false},
	{"go build,vet ./... *", "go vet ./...", true},
	{"go build,vet ./... *", "go run ./...", false},
	{"./gradlew build *", "./gradlew build", true},
	{"./gradlew build *", "gradlew build", false},
	{"./gradlew build *", "/tmp/gradlew build", false},
	{"go test * !-exec", "go test ./...", true},
}

func TestAllowingRuleMatchesWordByWord(t *testing.T) {
	for _, tt := range permitsTests {
		allow := matchesLine(t, tt.pattern, tt.line, bawn.Allow)
		if allow != tt.want {
			t.Errorf("a rule that allows %q, for %q: got %v, want %v", tt.pattern, tt.line, allow, tt.want)
		}
	}
}

// TestDenyingRuleMatchesEverySpelling is the control: what an allowance must
// not cover, a denial of the same words does.
func TestDenyingRuleMatchesEverySpelling(t *testing.T) {
	for _, tt := range [][2]string{
		{"git log *", "git -c core.pager=evil log"}, {"git log *", "/proj/bin/git log"}, {"make -n *", "make -Bn"},
		{"docker ps *", "docker -H tcp://evil ps"}, {"foo run *", "foo evil run"}, {"npm run test:unit *", "npm run evil test:unit"},
	} {
		if !matchesLine(t, tt[0], tt[1], bawn.Deny) {
			t.Errorf("a rule that denies %q does not match %q", tt[0], tt[1])
		}
	}
}

// matchesLine reports whether a policy with this one rule decides a line by it.
func matchesLine(t *testing.T, pattern, line string, v bawn.Verdict) bool {
	t.Helper()
	r := bawn.Rule{ID: "tried", Kind: bawn.Command, Pattern: pattern, Verdict: v, Priority: 300, Source: bawn.User}
	p, err := New([]bawn.Rule{r}, Options{})
	if err != nil {
		t.Fatalf("%q: %v", pattern, err)
	}
	d := p.Decide(&Question{
		Action:    bawn.Action{Kind: bawn.Command, Operation: bawn.Exec, Resource: line, Dir: "/proj"},
		Workspace: "/proj", Home: "/home/user", Mode: bawn.ModeNormal, Autonomy: bawn.AutonomyModerate,
	})
	for _, s := range d.Trace {
		if s.Stage == stageRule && s.Verdict == v && s.Why == "tried: command "+pattern {
			return true
		}
	}
	return false
}
