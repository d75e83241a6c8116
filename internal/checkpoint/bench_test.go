package checkpoint

import (
	"fmt"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// BenchmarkAgain takes a checkpoint of 10,000 files in 800 directories, of which
// nothing has changed.
func BenchmarkAgain(b *testing.B) {
	w := newWorld(b)
	for i := range 10_000 {
		w.file(fmt.Sprintf("d%d/e%d/file%d.go", i/500, i/12, i), fmt.Sprint("package p", i))
	}
	w.take("s", AtStart)
	w.take("s", AtStart)
	begun := spent()
	for b.Loop() {
		s := w.store()
		t, err := s.Scan(Options{Roots: []string{w.root}})
		w.must(err)
		_, err = t.Keep(nil)
		w.must(err)
		t.Close()
		w.must(s.Close())
	}
	b.ReportMetric((spent()-begun).Seconds()*1000/float64(b.N), "cpu-ms/op")
}

// spent is the processor time of this process.
func spent() time.Duration {
	var u unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkFirst stores 2,000 files of 8 KiB.
func BenchmarkFirst(b *testing.B) {
	w := newWorld(b)
	for i := range 2000 {
		text := ""
		for k := range 400 {
			text += fmt.Sprintln("line", i, k*i)
		}
		w.file(fmt.Sprintf("d%d/file%d.go", i/12, i), text)
	}
	for i := 0; b.Loop(); i++ {
		w.dir = fmt.Sprint(w.root, "-store", i)
		w.take("s", AtStart)
	}
}
