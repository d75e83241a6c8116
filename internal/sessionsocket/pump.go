//go:build linux || darwin

package sessionsocket

import (
	"io"
	"os"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

const pumpBuffer = 64 << 10

// A pump moves bytes from one stream to another until one of them ends or it is
// stopped. It holds at most one buffer, so that a fast writer waits for a slow
// reader.
type pump struct {
	from, to *stream
	busy     atomic.Bool // between reading and having written
	left     int         // bytes that were read and not written, after the end
	late     int         // how often it must be seen empty, besides once
	rest     *os.File    // where unread bytes can be counted, or nil
	ended    chan struct{}
}

func newPump(from, to *stream) *pump {
	return &pump{from: from, to: to, ended: make(chan struct{})}
}

func startPump(from, to *stream) *pump { return newPump(from, to).start() }

func (p *pump) start() *pump {
	go p.run()
	return p
}

func (p *pump) run() {
	defer close(p.ended)
	defer p.hangUp()
	buf := make([]byte, pumpBuffer)
	for p.from.ready(unix.POLLIN) == nil {
		p.busy.Store(true)
		n, err := p.from.read(buf)
		done, werr := p.to.write(buf[:n])
		p.left = n - done
		p.busy.Store(false)
		if err != nil || werr != nil {
			return
		}
	}
}

// hangUp passes the end on: it closes the other end of a command's pipe. The
// command then reads the end of its input, or learns that nobody reads its
// output any more (SIGPIPE).
func (p *pump) hangUp() {
	for _, s := range []*stream{p.from, p.to} {
		if s.pipe {
			s.file.Close()
		}
	}
}

// stop ends the pump and waits for it.
func (p *pump) stop() {
	p.from.stop()
	p.to.stop()
	<-p.ended
}

// close releases both streams. The pump must have ended.
func (p *pump) close() {
	if p.rest != nil {
		p.rest.Close()
	}
	p.from.close()
	p.to.close()
}

// finish ends the pump and releases both streams.
func (p *pump) finish() {
	p.stop()
	p.close()
}

// empty reports whether everything written to the pump so far has come out of
// it. Bytes are in the pipe until busy is true.
func (p *pump) empty() bool {
	n := 1
	_ = control(p.from.file, func(fd int) error { n = unread(fd); return nil })
	return n == 0 && !p.busy.Load()
}

// giveBack makes the guest's file stand where the command has stopped reading
// it, as if there was nothing in between. The pipe's bytes were not read.
func (p *pump) giveBack() {
	rest := p.left
	_ = control(p.rest, func(fd int) error { rest += unread(fd); return nil })
	_ = control(p.from.file, func(fd int) error {
		_, err := unix.Seek(fd, -int64(rest), io.SeekCurrent)
		return err
	})
}

// newPipe makes a pipe: the command's side blocks, ours is a stream.
// Output says that the command writes to it.
func newPipe(output bool) (command *os.File, host *stream, err error) {
	r, w, err := pipe()
	if err != nil {
		return nil, nil, err
	}
	theirs, ours := os.NewFile(uintptr(r), "stdin"), os.NewFile(uintptr(w), "feed")
	if output {
		theirs, ours = ours, theirs
	}
	_ = control(ours, func(fd int) error { return unix.SetNonblock(fd, true) }) // else poll(2) sees to it
	if host, err = newStream(ours, false, true); err != nil {
		theirs.Close()
		return nil, nil, err
	}
	host.pipe = true
	return theirs, host, nil
}
