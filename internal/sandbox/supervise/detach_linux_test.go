package supervise

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/linux/notify"
	"github.com/bawn-dev/bawn/internal/testenv"
)

// A thread that has answered a call answers the next one, with no more rights
// than the first time; calls that wait at the same time have one each; all end
// with the session.
func TestDetachedThreads(t *testing.T) {
	s := &supervisor{stop: make(chan struct{}), idle: make(chan detached), uid: unix.Geteuid(), gid: unix.Getegid()}
	c := &call{Call: &notify.Call{}, s: s}
	type seen struct {
		tid  int
		caps uint32
	}
	came, leave := make(chan seen), make(chan struct{})
	work := func(*call) error {
		var data [2]unix.CapUserData
		if err := unix.Capget(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &data[0]); err != nil {
			t.Error(err)
		}
		came <- seen{unix.Gettid(), data[0].Effective | data[1].Effective | data[0].Permitted | data[1].Permitted}
		<-leave
		return errAnswered
	}
	start := func() {
		t.Helper()
		if err := c.detach(work); err != errAnswered {
			t.Fatal(err)
		}
	}
	tids := map[int]int{}
	for range 20 {
		start()
		got := <-came
		if tids[got.tid]++; got.caps != 0 {
			t.Errorf("thread %d has the capabilities %x", got.tid, got.caps)
		}
		leave <- struct{}{}
		time.Sleep(20 * time.Millisecond) // until it is idle
	}
	if len(tids) > 10 {
		t.Errorf("20 calls, one after the other, took %d threads", len(tids))
	}
	clear(tids)
	for range 8 {
		start()
		tids[(<-came).tid]++
	}
	if len(tids) != 8 {
		t.Errorf("8 calls at a time had %d threads", len(tids))
	}
	s.later.Store(maxLater)
	if err := c.detach(work); err != unix.EAGAIN {
		t.Errorf("one call too many: %v", err)
	}
	close(leave)
	close(s.stop)
	ended := make(chan struct{})
	go func() { s.wait.Wait(); close(ended) }()
	testenv.Receive(t, "the end of the threads", ended)
}
