package gitstore

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bawn-dev/bawn/internal/sandbox/native"
	"github.com/bawn-dev/bawn/internal/testenv"
)

// BenchmarkPrepare is what every session's start waits for.
func BenchmarkPrepare(b *testing.B) {
	b.Run("50000 objects", func(b *testing.B) { benchPrepare(b, largeHost(b)) })
	for _, refs := range []int{2, 5000} {
		b.Run(fmt.Sprintf("refs=%d", refs), func(b *testing.B) {
			ws := newHost(b)
			head := run(b, ws, human(), "git", "rev-parse", "HEAD") + "\n"
			for i := range refs - 2 {
				write(b, filepath.Join(ws, fmt.Sprintf(".git/refs/heads/b%d", i)), head)
			}
			benchPrepare(b, ws)
		})
	}
}

func benchPrepare(b *testing.B, ws string) {
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
}

// largeHost makes a repository with 50,000 objects and 10,000 files.
func largeHost(b *testing.B) string {
	ws := newHost(b)
	var in strings.Builder
	for c := range 40 {
		fmt.Fprintf(&in, "commit refs/heads/main\ncommitter h <h@h> %d +0000\ndata 1\nx\n", 1700000000+c)
		if c == 0 {
			in.WriteString("from refs/heads/main^0\n")
		}
		for i := range 1000 {
			text := fmt.Sprintf("%d %d\n", c, i)
			fmt.Fprintf(&in, "M 100644 inline big/%d/%d\ndata %d\n%s", (c%10*1000+i)/50, i%50, len(text), text)
		}
	}
	cmd := exec.Command("git", "fast-import", "--quiet", "--force")
	cmd.Dir, cmd.Env, cmd.Stdin = ws, human(), strings.NewReader(in.String())
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	run(b, ws, human(), "git", "reset", "-q", "--hard")
	return ws
}

// BenchmarkSnapshot is the git part of a checkpoint.
func BenchmarkSnapshot(b *testing.B) {
	for name, host := range map[string]func(*testing.B) string{"small": func(b *testing.B) string { return newHost(b) }, "50000 objects": largeHost} {
		b.Run(name, func(b *testing.B) {
			ws := host(b)
			for b.Loop() {
				text, err := Snapshot(filepath.Join(ws, ".git"))
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(len(text)), "B/snapshot")
			}
		})
	}
}

// BenchmarkPublish is one commit of the guest's, from the sync's start to its end,
// with the sandbox in which it is read.
func BenchmarkPublish(b *testing.B) {
	testenv.Need(b, "userns", "notify", "git")
	b.Run("small", func(b *testing.B) { benchPublish(b, newHost(b)) })
	b.Run("50000 objects", func(b *testing.B) { benchPublish(b, largeHost(b)) })
}

func benchPublish(b *testing.B, ws string) {
	w := &world{t: b, ws: ws, state: b.TempDir()}
	w.opts = Options{State: w.state, Session: "s1234567890", Path: os.Getenv("PATH"), Untrusted: Confined(native.New(""))}
	w.begin()
	defer func() { w.store.confined.Close() }()
	var took []time.Duration
	for i := 0; b.Loop(); i++ {
		b.StopTimer()
		w.edit("f", fmt.Sprintln(i))
		w.guest("commit", "-qam", "x")
		if i == 0 {
			w.quiet() // makes the sandbox, and the pin
			w.edit("f", "y\n")
			w.guest("commit", "-qam", "y")
		}
		start := time.Now()
		b.StartTimer()
		w.quiet()
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "ms/median")
}
