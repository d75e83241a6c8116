package sigcatch

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ErrBusy is returned by Catch while there is another Catcher.
var ErrBusy = errors.New("signals are caught already")

// sigaction is the kernel's (rt_sigaction(2)).
type sigaction struct{ handler, flags, restorer, mask uintptr }

// ignored is the kernel's SIG_IGN.
const ignored = 1

// handler is the kernel's signal handler; it writes one byte to pipeFD.
func handler()

// restorer ends a handler, where the kernel asks for one.
func restorer()

var _, _ = handler, restorer // called by the kernel alone

// handlerPC and restorerPC are the addresses of those two.
func handlerPC() uintptr
func restorerPC() uintptr

// pipeFD is where the handler writes. The pipe is never closed: a handler that
// is late must not find another file under its number.
var pipeFD int32

var shared struct {
	sync.Mutex
	last *Catcher
	r    *os.File
}

// more are the channels of Also. Their lock is never held for long: forward takes it.
var more struct {
	sync.Mutex
	to map[syscall.Signal]chan<- os.Signal
}

// A Catcher has caught some signals.
type Catcher struct {
	ch       chan os.Signal
	old      map[syscall.Signal]sigaction
	released bool
	done     chan struct{}
}

// Catch catches each of wanted that is not ignored, and hands them on in order
// as os/signal does: a signal that does not fit into the queue of that size is
// dropped.
func Catch(wanted []syscall.Signal, size int) (*Catcher, error) {
	shared.Lock()
	defer shared.Unlock()
	if err := endLast(); err != nil {
		return nil, err
	}
	if shared.r == nil {
		var p [2]int
		if err := unix.Pipe2(p[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
			return nil, fmt.Errorf("make a pipe: %w", err)
		}
		shared.r, pipeFD = os.NewFile(uintptr(p[0]), "signals"), int32(p[1])
	}
	c := &Catcher{ch: make(chan os.Signal, size), old: map[syscall.Signal]sigaction{}, done: make(chan struct{})}
	for _, s := range wanted {
		if err := c.catch(s); err != nil {
			return nil, errors.Join(err, c.restore())
		}
	}
	shared.last = c
	go c.forward(shared.r)
	return c, nil
}

// endLast waits until nobody reads the pipe.
func endLast() error {
	last := shared.last
	switch {
	case last == nil:
		return nil
	case !last.released:
		return ErrBusy
	}
	if _, err := unix.Write(int(pipeFD), []byte{0}); err != nil {
		return fmt.Errorf("end the last catcher: %w", err)
	}
	<-last.done
	shared.last = nil
	return nil
}

// catch replaces the current handler, unless that is SIG_IGN.
func (c *Catcher) catch(s syscall.Signal) error {
	old, err := action(s, nil)
	if err != nil || old.handler == ignored {
		return err
	}
	const onStack, restart, hasRestorer = 0x08000000, 0x10000000, 0x04000000 // SA_ONSTACK, SA_RESTART, SA_RESTORER
	now := &sigaction{handler: handlerPC(), flags: onStack | restart, mask: ^uintptr(0)}
	if pc := restorerPC(); pc != 0 {
		now.flags, now.restorer = now.flags|hasRestorer, pc
	}
	if _, err := action(s, now); err != nil {
		return err
	}
	c.old[s] = old
	return nil
}

// action is rt_sigaction(2).
func action(s syscall.Signal, now *sigaction) (old sigaction, err error) {
	_, _, errno := syscall.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(s), uintptr(unsafe.Pointer(now)), uintptr(unsafe.Pointer(&old)), 8, 0, 0)
	if errno != 0 {
		return old, fmt.Errorf("catch %v: %w", s, errno)
	}
	return old, nil
}

// forward reads the pipe until endLast writes a zero.
func (c *Catcher) forward(r *os.File) {
	defer close(c.done)
	var b [512]byte
	for {
		n, err := r.Read(b[:])
		if err != nil || n == 0 {
			return
		}
		for _, s := range b[:n] {
			if s == 0 {
				return
			}
			c.pass(syscall.Signal(s))
		}
	}
}

// pass hands one signal on, or drops it: one that comes late for a channel of Also is
// not the catcher's.
func (c *Catcher) pass(s syscall.Signal) {
	more.Lock()
	defer more.Unlock()
	to := more.to[s]
	if _, mine := c.old[s]; to == nil && mine {
		to = c.ch
	}
	select {
	case to <- s: // never, where it is nil
	default:
	}
}

// ErrAlone is returned by Also while there is no Catcher.
var ErrAlone = errors.New("no signals are caught")

// Also catches one more signal, as long as there is a Catcher, and hands it on to ch
// until stop is called, and not any more then. The first signal that os/signal catches takes two threads,
// which a session would keep for as long as it lives.
func Also(s syscall.Signal, ch chan<- os.Signal) (stop func(), err error) {
	shared.Lock()
	defer shared.Unlock()
	more.Lock()
	defer more.Unlock()
	switch {
	case shared.last == nil || shared.last.released:
		return nil, ErrAlone
	case more.to[s] != nil:
		return nil, ErrBusy
	}
	one := &Catcher{old: map[syscall.Signal]sigaction{}}
	if err := one.catch(s); err != nil {
		return nil, err
	}
	if more.to == nil {
		more.to = map[syscall.Signal]chan<- os.Signal{}
	}
	more.to[s] = ch
	return sync.OnceFunc(func() {
		more.Lock()
		defer more.Unlock()
		delete(more.to, s)
		_ = one.restore() // it has been set, and so can be again
	}), nil
}

// Signals delivers what was caught.
func (c *Catcher) Signals() chan os.Signal { return c.ch }

// Reset restores the effect of s before Catch.
func (c *Catcher) Reset(s syscall.Signal) error {
	old, ok := c.old[s]
	if !ok {
		return nil
	}
	_, err := action(s, &old)
	return err
}

func (c *Catcher) restore() error {
	var errs []error
	for s := range c.old {
		errs = append(errs, c.Reset(s))
	}
	return errors.Join(errs...)
}

// Release restores the effects of all signals before Catch. It is called once.
func (c *Catcher) Release() error {
	shared.Lock()
	defer shared.Unlock()
	c.released = true
	return c.restore()
}
