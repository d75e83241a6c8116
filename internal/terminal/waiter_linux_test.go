package terminal

import (
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/testenv"
)

// threads is how many this process has.
func threads(t *testing.T) int {
	t.Helper()
	all, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}

// TestPumpsTakeNoThread lets many pumps wait for what does not come. The control is
// poll(2), which takes a thread for each.
func TestPumpsTakeNoThread(t *testing.T) {
	const many = 30
	before := threads(t)
	waitAll := func(wait func(p *pump, fd int) error) (end func()) {
		var pumps []*pump
		var ends []*os.File
		for range many {
			p, err := newPump()
			if err != nil {
				t.Fatal(err)
			}
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			pumps, ends = append(pumps, p), append(ends, r, w)
			fd := descriptor(r)
			go func() {
				defer close(p.ended)
				if err := wait(p, fd); !errors.Is(err, errStopped) {
					t.Errorf("got %v, want %v", err, errStopped)
				}
			}()
		}
		return func() {
			for _, p := range pumps {
				p.stop()
			}
			for _, f := range ends {
				f.Close()
			}
		}
	}
	end := waitAll(func(p *pump, fd int) error { return p.wait(fd, unix.POLLIN) })
	if now := threads(t); now-before > many/2 {
		t.Errorf("%d more threads for %d pumps", now-before, many)
	}
	end()
	end = waitAll(func(p *pump, fd int) error {
		_, woken, err := poll(fd, unix.POLLIN, p.wakeFD, -1)
		if woken {
			return errStopped
		}
		return err
	})
	testenv.Until(t, "a thread for each call", func() bool { return threads(t) >= many })
	end()
}

// TestPumpWaits: it sees what comes, again and again, and what epoll(7) does not take.
func TestPumpWaits(t *testing.T) {
	p, err := newPump()
	if err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	come := make(chan struct{})
	go func() {
		for range come {
			if _, err := w.WriteString("x"); err != nil {
				t.Error(err)
			}
		}
	}()
	for range 100 {
		come <- struct{}{}
		if n, err := p.read(descriptor(r), make([]byte, 1)); n != 1 || err != nil {
			t.Fatalf("read %d bytes: %v", n, err)
		}
	}
	close(come)
	if err := p.wait(descriptor(null), unix.POLLIN); err != nil {
		t.Errorf("a file: %v", err)
	}
	close(p.ended)
	p.stop()
}
