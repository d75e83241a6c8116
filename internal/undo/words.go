package undo

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// Bytes writes a size as people read it.
func Bytes(n int64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	v, i := float64(n), 0
	for v >= 1024 && i < len(units)-1 {
		v, i = v/1024, i+1
	}
	if i == 0 || v >= 100 {
		return fmt.Sprintf("%.0f %s", v, units[i])
	}
	return fmt.Sprintf("%.1f %s", v, units[i])
}

// Files writes a number of files.
func Files(n int) string { return Count(n, "file") }

// Count writes a number of things.
func Count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// Progress returns what shows progress on a terminal, once it has taken a second.
func Progress(w io.Writer, now func() time.Time) func(done, all int64) {
	var mu sync.Mutex
	began, last := now(), time.Time{}
	return func(done, all int64) {
		mu.Lock()
		defer mu.Unlock()
		t := now()
		end := done >= all
		switch {
		case end && !last.IsZero():
			fmt.Fprint(w, "\r\x1b[K")
			last = time.Time{}
		case !end && t.Sub(began) > time.Second && t.Sub(last) > 100*time.Millisecond:
			last = t
			fmt.Fprintf(w, "\rbawn: keeping what is here, for \"bawn undo\": %s of %s", Bytes(done), Bytes(all))
		}
	}
}
