package shim

import (
	"os"
	"slices"
	"testing"
	"time"

	"github.com/bawn-dev/bawn/internal/intent"
	"github.com/bawn-dev/bawn/internal/ipc"
)

// BenchmarkCommand measures one `true`: by bash itself, through a fresh shim
// (the test binary, which starts slower than bawn), through a new connection to
// the session socket, and as a statement of a shell that is connected.
func BenchmarkCommand(b *testing.B) {
	r := newRig(b)
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		b.Fatal(err)
	}
	defer null.Close()
	measure := func(name string, f func()) {
		b.Run(name, func(b *testing.B) {
			var took []time.Duration
			for b.Loop() {
				began := time.Now()
				f()
				took = append(took, time.Since(began))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
		})
	}
	x := intent.Exec{Argv: []string{"sh", "-c", "true"}, Dir: r.dir, Env: r.environ, Stdio: [3]bool{true, true, true}}
	end := func(c *ipc.Conn) {
		for {
			var reply intent.Reply
			if _, err := c.Receive(&reply); err != nil || reply.Denied != nil {
				b.Fatalf("%+v, %v", reply, err)
			}
			if reply.Exit != nil {
				return
			}
		}
	}
	measure("bare", func() { finish(b, real(r, x.Argv), "") })
	measure("shim", func() { finish(b, r.shell(x.Argv...), "") })
	measure("socket", func() {
		c := r.guest()
		defer c.Close()
		if err := c.Send(&intent.Hello{Exec: &x}, null, null, null); err != nil {
			b.Fatal(err)
		}
		end(c)
	})
	c := r.guest()
	next := x
	next.Statement = true
	if err := c.Send(&intent.Hello{Exec: &next}, null, null, null); err != nil {
		b.Fatal(err)
	}
	end(c)
	measure("statement", func() {
		if err := c.Send(&intent.Update{Exec: &next}); err != nil {
			b.Fatal(err)
		}
		end(c)
	})
}
