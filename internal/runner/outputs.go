//go:build linux || darwin

package runner

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// outputPatience is how long the end of a session waits for the last of its output.
const outputPatience = 5 * time.Second

// outputs carries a guest's output to the files to which its standard output or error
// was redirected. The guest has a pipe in their place: a file that it holds it could
// read, cut and write anywhere (/proc/self/fd, ftruncate), also what others have written
// there. The zero outputs carries nothing.
type outputs struct {
	limit   int64 // bytes of the largest file that the guest may write; 0 is no limit
	theirs  []*os.File
	ours    []*os.File
	copying sync.WaitGroup
}

// join returns stdio with pipes in the place of files. Output and error that are one file
// are one pipe, so that their order stays.
func (o *outputs) join(stdio [3]*os.File) ([3]*os.File, error) {
	for i := 1; i < len(stdio); i++ {
		if !writtenFile(stdio[i]) {
			continue
		}
		if i == 2 && len(o.theirs) > 0 && sameFile(o.ours[0], stdio[i]) {
			stdio[i] = o.theirs[0]
			continue
		}
		r, w, err := outputPipe()
		if err != nil {
			return stdio, fmt.Errorf("make a pipe for the guest's output: %w", err)
		}
		to := stdio[i]
		o.theirs, o.ours = append(o.theirs, w), append(o.ours, to)
		o.copying.Go(func() { o.carry(to, r) })
		stdio[i] = w
	}
	return stdio, nil
}

// outputPipe returns a pipe to which the guest's end blocks, as a file does.
func outputPipe() (r, w *os.File, err error) {
	if r, w, err = os.Pipe(); err == nil {
		err = unix.SetNonblock(int(w.Fd()), false)
	}
	return r, w, err
}

// carry copies until the guest has closed its side. Where no more can be written, the
// guest's next write fails.
func (o *outputs) carry(to, from *os.File) {
	defer from.Close()
	var in io.Reader = from
	if o.limit > 0 {
		in = io.LimitReader(from, max(0, o.limit-position(to)))
	}
	_, _ = io.Copy(to, in)
}

// position is where the next write to a file begins.
func position(f *os.File) int64 {
	flags, err := unix.FcntlInt(f.Fd(), unix.F_GETFL, 0)
	if info, failed := f.Stat(); err == nil && failed == nil && flags&unix.O_APPEND != 0 {
		return info.Size()
	}
	at, err := unix.Seek(int(f.Fd()), 0, io.SeekCurrent)
	if err != nil {
		return 0
	}
	return at
}

// started lets the guest alone hold its side.
func (o *outputs) started() {
	for _, f := range o.theirs {
		_ = f.Close() // the guest has it
	}
}

// close waits until the guest's output is in its files.
func (o *outputs) close() {
	if len(o.ours) == 0 {
		return
	}
	over := make(chan struct{})
	go func() {
		o.copying.Wait()
		close(over)
	}()
	select {
	case <-over:
	case <-time.After(outputPatience): // something that outlives the session holds the pipe
	}
}

// writtenFile reports whether f is a regular file that may be written.
func writtenFile(f *os.File) bool {
	if f == nil {
		return false
	}
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return false
	}
	flags, err := unix.FcntlInt(f.Fd(), unix.F_GETFL, 0)
	return err == nil && flags&unix.O_ACCMODE != unix.O_RDONLY
}

func sameFile(a, b *os.File) bool {
	x, err := a.Stat()
	y, failed := b.Stat()
	return err == nil && failed == nil && os.SameFile(x, y)
}
