package layout

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// TestNested: what repositories below the workspace name is protected, existing
// or not, and none of them can be moved.
func TestNested(t *testing.T) {
	m := append(machine{"/home/ada/p/lib/", "/home/ada/p/lib/.git/", "/home/ada/p/lib/.git/HEAD", "/home/ada/p/lib/.git/config", "/home/ada/p/dev/", "/home/ada/p/dev/inner.cfg", "/home/ada/p/lib/tool",
		"/home/ada/p/a/b/", "/home/ada/p/a/", "/home/ada/p/a/b/sub/", "/home/ada/p/a/b/sub/.git/", "/home/ada/p/guests/", "/home/ada/p/guests/.git/"}, laptop...)
	facts := m.facts(1000)
	facts.ReadFile = func(p string) (string, error) {
		switch p {
		case "/home/ada/p/lib/.git/config":
			return "[core]\n\thooksPath = ../hooks\n\tfsmonitor = ./tool\n[include]\n\tpath = ../../dev/inner.cfg\n", nil
		case "/home/ada/p/dev/inner.cfg":
			return "[include]\n\tpath = more.cfg\n", nil
		}
		return "", fmt.Errorf("no %q", p)
	}
	plan, err := Layout(plain("/home/ada/p"), facts)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"/home/ada/p/dev/inner.cfg", "/home/ada/p/dev/more.cfg", "/home/ada/p/hooks", "/home/ada/p/lib/.git", "/home/ada/p/lib/tool"}
	if got := slices.DeleteFunc(slices.Clone(plan.Targets), func(p string) bool { return !strings.HasPrefix(p, "/home/ada/p/") }); !slices.Equal(got, want) {
		t.Errorf("targets: %q, want %q", got, want)
	}
	p := NewProtector(plan.Protected, plan.ExtraNames, plan.OpenNames)
	p.Targets = plan.Targets
	for path, op := range map[string]Operation{"/home/ada/p/lib": OpRenameFrom, "/home/ada/p/hooks": OpMkdir, "/home/ada/p/hooks/post-commit": OpOpen} {
		if r, _ := p.Rule(op, path, true); r != RulingDeny {
			t.Errorf("%v of %q is not refused", op, path)
		}
	}
	if r, _ := p.Rule(OpRenameFrom, "/home/ada/p/a", true); r != RulingAllow {
		t.Error("control: a directory without a repository of the host's can't be moved")
	}
}

func BenchmarkRepositories(b *testing.B) {
	dir := b.TempDir()
	builder := &builder{facts: HostFacts()}
	for i := range 1000 {
		if err := os.MkdirAll(fmt.Sprintf("%s/%d/%d/%d", dir, i%10, i/10%10, i/100), 0o755); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		builder.repositories(dir)
	}
}
