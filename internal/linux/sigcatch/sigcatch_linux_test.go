package sigcatch

import (
	"errors"
	"os"
	"os/signal"
	"syscall"
	"testing"

	"github.com/bawn-dev/bawn/internal/testenv"
)

// next waits for one signal.
func next(t *testing.T, ch chan os.Signal) os.Signal {
	t.Helper()
	return testenv.Receive(t, "a signal", ch)
}

func raise(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(os.Getpid(), s); err != nil {
		t.Fatal(err)
	}
}

// TestCaughtSignalsArrive raises signals that would end the process.
func TestCaughtSignalsArrive(t *testing.T) {
	for range 3 {
		c, err := Catch([]syscall.Signal{syscall.SIGTERM, syscall.SIGUSR1}, 8)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Catch(nil, 1); !errors.Is(err, ErrBusy) {
			t.Errorf("second: got %v, want ErrBusy", err)
		}
		for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGTERM} {
			raise(t, s)
			if got := next(t, c.Signals()); got != s {
				t.Errorf("got %v, want %v", got, s)
			}
		}
		if err := c.Release(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestManySignalsHarmNothing raises them while all threads compute.
func TestManySignalsHarmNothing(t *testing.T) {
	c, err := Catch([]syscall.Signal{syscall.SIGUSR2}, 1)
	if err != nil {
		t.Fatal(err)
	}
	stop, sums := make(chan struct{}), make(chan int, 4)
	for range 4 {
		go func() {
			n, list := 0, []int{}
			for {
				select {
				case <-stop:
					sums <- n
					return
				default:
					list = append(list[:0], make([]int, 100)...)
					n += len(list) / 100
				}
			}
		}()
	}
	for range 2000 {
		raise(t, syscall.SIGUSR2)
	}
	close(stop)
	for range 4 {
		if <-sums < 0 {
			t.Error("sum overflowed")
		}
	}
	if err := c.Release(); err != nil {
		t.Fatal(err)
	}
}

// TestWhatWasThereComesBack looks at ignored signals and at those that
// os/signal had.
func TestWhatWasThereComesBack(t *testing.T) {
	signal.Ignore(syscall.SIGHUP)
	defer signal.Reset(syscall.SIGHUP)
	theirs := make(chan os.Signal, 1)
	signal.Notify(theirs, syscall.SIGUSR1)
	defer signal.Stop(theirs)
	c, err := Catch([]syscall.Signal{syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGTERM}, 8)
	if err != nil {
		t.Fatal(err)
	}
	raise(t, syscall.SIGHUP) // stays ignored
	raise(t, syscall.SIGTERM)
	if got := next(t, c.Signals()); got != syscall.SIGTERM {
		t.Errorf("got %v, want only %v", got, syscall.SIGTERM)
	}
	if err := c.Reset(syscall.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	raise(t, syscall.SIGUSR1)
	next(t, theirs)
	if err := c.Release(); err != nil {
		t.Fatal(err)
	}
	raise(t, syscall.SIGUSR1)
	next(t, theirs)
}

// TestAlso catches one more signal beside a catcher's. It stays caught when the catcher
// ends, and does not come to the next one's channel.
func TestAlso(t *testing.T) {
	also := make(chan os.Signal, 1)
	if _, err := Also(syscall.SIGIO, also); !errors.Is(err, ErrAlone) {
		t.Errorf("without a catcher: got %v, want ErrAlone", err)
	}
	for range 3 {
		c, err := Catch([]syscall.Signal{syscall.SIGTERM}, 8)
		if err != nil {
			t.Fatal(err)
		}
		stop, err := Also(syscall.SIGIO, also)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Also(syscall.SIGIO, also); !errors.Is(err, ErrBusy) {
			t.Errorf("second: got %v, want ErrBusy", err)
		}
		raise(t, syscall.SIGIO)
		next(t, also)
		if err := c.Release(); err != nil {
			t.Fatal(err)
		}
		raise(t, syscall.SIGIO) // would end the process
		next(t, also)
		stop()
		c, err = Catch([]syscall.Signal{syscall.SIGTERM}, 8)
		if err != nil {
			t.Fatal(err)
		}
		raise(t, syscall.SIGIO) // Go's runtime drops it again
		raise(t, syscall.SIGTERM)
		if got := next(t, c.Signals()); got != syscall.SIGTERM || len(also) > 0 {
			t.Errorf("after stop: got %v, and %d more", got, len(also))
		}
		if err := c.Release(); err != nil {
			t.Fatal(err)
		}
	}
}
