package session_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/bawn-dev/bawn/internal/attach"
	"github.com/bawn-dev/bawn/internal/testenv"
)

// many is how many sessions live at once. bench/sessions takes more.
const many = 40

// TestCrowd: many sessions live at once, all are listed, none is in another's
// way, and one command ends them all.
func TestCrowd(t *testing.T) {
	h := newHome(t)
	nap := "6" + strconv.Itoa(os.Getpid()) // of nobody else
	started := map[string]bool{}
	for range many {
		started[h.detach("sleep", nap)] = true
	}
	list := h.ps()
	for id := range started {
		if s := list[id]; s.State != attach.Running || !s.Hosted {
			t.Errorf("ps says of %s: %+v", id, s)
		}
	}
	if len(list) != many {
		t.Errorf("%d are listed, want %d", len(list), many)
	}
	testenv.Until(t, "all guests", func() bool { return running("sleep", nap) == many }) // one that has just begun has no command line yet
	quiet(t, list)
	h.bawn(3, "run", "-q", "--net", "none", "--", "sh", "-c", "exit 3")
	h.bawn(0, "kill", "--all")
	if left := h.ps(); len(left) != 0 {
		t.Errorf("after kill --all ps lists %v", left)
	}
	testenv.Until(t, "the guests' end", func() bool { return running("sleep", nap) == 0 })
	testenv.Until(t, "the hosts' end", func() bool {
		for _, s := range list {
			if _, err := os.Stat("/proc/" + strconv.Itoa(s.PID)); err == nil {
				return false
			}
		}
		return true
	})
	sockets, err := filepath.Glob(filepath.Join(h.registry, "sessions", "*", "*.sock"))
	if err != nil || len(sockets) > 0 {
		t.Errorf("left behind: %v (%v)", sockets, err)
	}
}

// quiet wants hosts that nobody asks anything to do next to nothing: a
// tenth of one processor, all together.
func quiet(t *testing.T, list map[string]attach.Entry) {
	t.Helper()
	worked := func() (sum time.Duration) {
		for _, s := range list {
			threads, _ := filepath.Glob("/proc/" + strconv.Itoa(s.PID) + "/task/*/schedstat")
			for _, name := range threads {
				text, err := os.ReadFile(name)
				if err != nil {
					continue // a thread that has ended
				}
				first, _, _ := strings.Cut(string(text), " ") // nanoseconds
				n, err := strconv.ParseInt(first, 10, 64)
				check(t, err)
				sum += time.Duration(n)
			}
		}
		return sum
	}
	const watched = time.Second
	least := time.Hour
	for range 20 { // what others do in directories that are watched wakes them
		before := worked()
		time.Sleep(watched)
		least = min(least, worked()-before)
		if least <= watched/10 {
			return
		}
	}
	t.Errorf("%d sessions that do nothing worked %v in %v", len(list), least, watched)
}
