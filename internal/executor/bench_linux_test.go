package executor

import (
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/bawn-dev/bawn/internal/ticket"
)

// BenchmarkDo measures what a command costs through the executor, from the
// making of its ticket to its end, in turn with the same command started here:
// the machine is the same for both. What counts is the difference of the
// medians.
func BenchmarkDo(b *testing.B) {
	for name, argv := range map[string][]string{"true": {"/bin/true"}, "sh": {"/bin/sh", "-c", ":"}} {
		b.Run(name, func(b *testing.B) {
			l := start(b)
			null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
			if err != nil {
				b.Fatal(err)
			}
			defer null.Close()
			d := Do{Argv: argv, Dir: "/", Env: os.Environ(), Stdio: [3]bool{true, true, true}}
			var through, bare []time.Duration
			for b.Loop() {
				began := time.Now()
				p, err := l.Do(b.Context(), l.signed(b, d), [3]*os.File{null, null, null})
				if err != nil {
					b.Fatal(err)
				}
				for range p.Changes() {
				}
				half := time.Now()
				cmd := exec.Command(argv[0], argv[1:]...)
				cmd.Stdin, cmd.Stdout, cmd.Stderr = null, null, null
				if err := cmd.Run(); err != nil {
					b.Fatal(err)
				}
				through, bare = append(through, half.Sub(began)), append(bare, time.Since(half))
			}
			report50(b, through, "executor-p50-us")
			report50(b, bare, "bare-p50-us")
		})
	}
}

func report50(b *testing.B, list []time.Duration, unit string) {
	slices.Sort(list)
	b.ReportMetric(float64(list[len(list)/2].Microseconds()), unit)
}

// BenchmarkPermit is the executor's own look at a ticket.
func BenchmarkPermit(b *testing.B) {
	issuer := ticket.NewIssuer(time.Now)
	p := program{verifier: ticket.NewVerifier(time.Now, issuer.Keys()...), session: session, plan: plan}
	l := &lab{issuer: issuer}
	for b.Loop() {
		b.StopTimer()
		d := l.signed(b, Do{Argv: []string{"/bin/true"}, Dir: "/", Env: os.Environ()})
		b.StartTimer()
		if r := p.permit(&d); r != nil {
			b.Fatal(r)
		}
	}
}
