package policy

import (
	"fmt"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn"
)

var sink bawn.Decision

func BenchmarkCached(b *testing.B) {
	p, q := corpusPolicy(b), ask4("git status --short")
	for b.Loop() {
		sink = p.Decide(&q)
	}
}

func benchDecide(b *testing.B, p *Policy, command string) {
	q := ask4(command)
	for b.Loop() {
		sink = p.decide(&q)
	}
}

func BenchmarkSimple(b *testing.B) { benchDecide(b, corpusPolicy(b), "git status --short") }

func BenchmarkGrep(b *testing.B) {
	benchDecide(b, corpusPolicy(b), "grep -rn 'func main' src internal")
}

func BenchmarkPipeline20(b *testing.B) {
	benchDecide(b, corpusPolicy(b), "cat a.txt"+strings.Repeat(" | grep -v foo", 19))
}

// BenchmarkRules decides by few and by many rules of every kind.
func BenchmarkRules(b *testing.B) {
	for _, n := range []int{10, 10_000} {
		p, err := New(manyRules(n), Options{})
		if err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprint(n), func(b *testing.B) { benchDecide(b, p, "cat src/main.go docs/x.md") })
	}
}

func manyRules(n int) (out []bawn.Rule) {
	for i := range n {
		r := bawn.Rule{ID: fmt.Sprintf("r%d", i), Source: bawn.User, Priority: i % 50, Verdict: bawn.Verdict(i % 3)}
		switch i % 4 {
		case 0:
			r.Kind, r.Pattern = bawn.Command, fmt.Sprintf("tool%d run *", i)
		case 1:
			r.Kind, r.Pattern = bawn.Filesystem, fmt.Sprintf("/srv/app%d/**", i)
		case 2:
			r.Kind, r.Pattern = bawn.Network, fmt.Sprintf("*.host%d.example", i)
		default:
			r.Kind, r.Pattern = bawn.Tool, fmt.Sprintf("mcp__server%d__call", i)
		}
		out = append(out, r)
	}
	return out
}

// BenchmarkContained decides typical commands in a session that contains what they do.
func BenchmarkContained(b *testing.B) {
	for _, line := range []string{
		"ls", "git status --short", "git push origin fix", "npm test", "npm install", "go build ./...", "go test ./internal/... -run TestX", "rm -rf build", "make -j4",
		"python3 -m pytest tests", "grep -rn 'func main' src", "cat src/main.go", "curl -s https://example.com", "cd web && npm run build", "echo hi > out.txt",
	} {
		b.Run(line, func(b *testing.B) {
			p, q := corpusPolicy(b), ask4(line)
			q.Contained, q.Covered = bawn.ContainedFully, true
			b.ReportAllocs()
			for b.Loop() {
				sink = p.decide(&q)
			}
		})
	}
}
