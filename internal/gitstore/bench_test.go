package gitstore

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/bawn-dev/bawn/internal/sandbox/native"
	"github.com/bawn-dev/bawn/internal/testenv"
)

// BenchmarkPrepare is what every session's start waits for.
func BenchmarkPrepare(b *testing.B) {
	for _, refs := range []int{2, 5000} {
		b.Run(fmt.Sprintf("refs=%d", refs), func(b *testing.B) {
			ws := newHost(b)
			head := run(b, ws, human(), "git", "rev-parse", "HEAD") + "\n"
			for i := range refs - 2 {
				write(b, filepath.Join(ws, fmt.Sprintf(".git/refs/heads/b%d", i)), head)
			}
			w := newWorld(b, ws)
			for i := 0; b.Loop(); i++ {
				w.opts.Session = fmt.Sprintf("b%d", i)
				s, err := Prepare(w.repo, w.opts)
				if err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				err = removePlace(s.dir, s.guest)
				if s.shut(); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
		})
	}
}

// BenchmarkPublish is one commit of the guest's, from the sync's start to its end,
// with the sandbox in which it is read.
func BenchmarkPublish(b *testing.B) {
	testenv.Need(b, "userns", "notify", "git")
	w := &world{t: b, ws: newHost(b), state: b.TempDir()}
	w.opts = Options{State: w.state, Session: "s1234567890", Path: os.Getenv("PATH"), Untrusted: Confined(native.New(""))}
	w.begin()
	defer func() { w.store.confined.Close() }()
	for i := 0; b.Loop(); i++ {
		b.StopTimer()
		w.edit("f", fmt.Sprintln(i))
		w.guest("commit", "-qam", "x")
		if i == 0 {
			w.quiet() // makes the sandbox, and the pin
			w.edit("f", "y\n")
			w.guest("commit", "-qam", "y")
		}
		b.StartTimer()
		w.quiet()
	}
}
