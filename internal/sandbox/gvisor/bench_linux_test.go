package gvisor

import (
	"testing"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/sandbox"
)

// BenchmarkExec is one short command in a sandbox that runs; "runsc exec" is what
// it is to be compared with.
func BenchmarkExec(b *testing.B) {
	g := started(b, request(workspace(b), bawn.NetworkNone))
	for b.Loop() {
		p, err := g.Exec(sandbox.Command{Argv: []string{"/bin/true"}})
		if err != nil {
			b.Fatal(err)
		}
		wait(b, p)
	}
}

// BenchmarkSession is a sandbox for one short command; compare it with "runsc do".
func BenchmarkSession(b *testing.B) {
	started(b, request(workspace(b), bawn.NetworkNone)) // the trials come first
	for b.Loop() {
		req := request(workspace(b), bawn.NetworkNone)
		req.Session.ID = "s2"
		p, err := provider()
		if err != nil {
			b.Fatal(err)
		}
		g, err := begin(p, req)
		if err != nil {
			b.Fatal(err)
		}
		c, err := g.Exec(sandbox.Command{Argv: []string{"/bin/true"}})
		if err != nil {
			b.Fatal(err)
		}
		wait(b, c)
		if err := g.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
