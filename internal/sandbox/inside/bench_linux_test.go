package inside

import (
	"os/exec"
	"testing"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/testenv"
)

// BenchmarkUnsandboxed is what Start is measured against: a program in the same
// namespaces, without anything of ours in them.
func BenchmarkUnsandboxed(b *testing.B) {
	testenv.Need(b, "userns")
	for b.Loop() {
		cmd := exec.Command("/bin/true")
		cmd.SysProcAttr = namespaces()
		if err := cmd.Run(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkStart makes the namespaces, has a setup carried out in them, runs one
// command and ends it all. Two programs of Go start on the way, one of which
// only mounts /proc.
func BenchmarkStart(b *testing.B) {
	for name, change := range map[string]func(*Setup){
		"guest": func(*Setup) {},
		"all":   func(s *Setup) { s.Landlock.ABI, s.Landlock.Writable = 1, []string{"/dev"}; s.Terminals = true },
	} {
		b.Run(name, func(b *testing.B) {
			s := bare("/")
			change(&s)
			for b.Loop() {
				l := start(b, s)
				p, err := l.Exec(sandbox.Command{Argv: []string{"/bin/true"}, Last: true})
				if err != nil {
					b.Fatal(err)
				}
				ended(b, p)
				<-l.Done()
			}
		})
	}
}

// BenchmarkExec runs a command in a guest that is there.
func BenchmarkExec(b *testing.B) {
	for name, limits := range map[string]bawn.Resources{"plain": {}, "limited": {MemoryMB: 4096, PIDs: 4096, OpenFiles: 1024}} {
		b.Run(name, func(b *testing.B) {
			s := bare("/")
			s.Limits = limits
			l := start(b, s)
			for b.Loop() {
				p, err := l.Exec(sandbox.Command{Argv: []string{"/bin/true"}})
				if err != nil {
					b.Fatal(err)
				}
				ended(b, p)
			}
		})
	}
}
