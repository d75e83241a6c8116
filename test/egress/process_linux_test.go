package egress_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/bawn-dev/bawn/internal/egress/remote"
	"github.com/bawn-dev/bawn/internal/testenv"
)

// A process of the world.
type process struct {
	pid, parent int
	name, state string
}

// processes lists those of a name that have not ended.
func processes(t testing.TB, name string) []process {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/stat")
	check(t, err)
	var found []process
	for _, path := range all {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		head, rest, _ := bytes.Cut(text, []byte(") "))
		f := strings.Fields(string(rest))
		pid, comm, _ := strings.Cut(string(head), " (")
		p := process{name: comm, state: f[0]}
		p.pid, _ = strconv.Atoi(pid)
		p.parent, _ = strconv.Atoi(f[1])
		if p.name == name && p.state != "Z" {
			found = append(found, p)
		}
	}
	return found
}

// relay is the one session's.
func relay(t testing.TB) process {
	t.Helper()
	all := processes(t, remote.Lean)
	if len(all) != 1 {
		t.Fatalf("%v are relays, want one", all)
	}
	return all[0]
}

// descriptors counts a process' open files.
func descriptors(t testing.TB, pid int) int {
	t.Helper()
	fds, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	check(t, err)
	return len(fds)
}

// kinds counts a process' open files by what they are.
func kinds(t testing.TB, pid int) map[string]int {
	t.Helper()
	links, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	check(t, err)
	count := map[string]int{}
	for _, link := range links {
		to, err := os.Readlink(link)
		if err == nil { // it may be closed by now
			kind, _, _ := strings.Cut(to, ":")
			count[kind]++
		}
	}
	return count
}

// memory is what a process has had in memory at most, in KiB (proc(5), VmHWM).
func memory(t testing.TB, pid int) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	check(t, err)
	for line := range strings.Lines(string(text)) {
		if kib, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			n, err := strconv.Atoi(strings.Fields(kib)[0])
			check(t, err)
			return n
		}
	}
	t.Fatal("no VmHWM")
	return 0
}

// TestRelayKilled takes a session's relay away: its connections end, no others
// begin, and the guest goes on to its own end.
func TestRelayKilled(t *testing.T) {
	d := newAccount(t)
	s := d.openTerminal(t, allow("allowed.test:7777"), "$PROBE hold allowed.test:7777; echo and goes on; exit 7")
	s.see("connected")
	check(t, syscall.Kill(relay(t).pid, syscall.SIGKILL))
	screen := s.end()
	for _, want := range []string{"ended: ", "at once: true", "and goes on"} {
		if !strings.Contains(screen, want) {
			t.Errorf("%q is not on the screen", want)
		}
	}
	if strings.Contains(screen, "ended: <nil>") || strings.Contains(screen, "again: <nil>") || s.code != 7 {
		t.Errorf("code %d, want 7:\n%s", s.code, screen)
	}
}

// TestBawnKilled leaves nothing of a session whose supervisor is gone.
func TestBawnKilled(t *testing.T) {
	d := newAccount(t)
	before := processes(t, "probe")
	s := d.openTerminal(t, []string{"--allow", "allowed.test:7777", "--http", "api.test GET /**"}, "$PROBE hold allowed.test:7777")
	s.see("connected")
	check(t, syscall.Kill(relay(t).parent, syscall.SIGKILL))
	<-s.done
	testenv.Until(t, "the relay has ended", func() bool { return len(processes(t, remote.Lean)) == 0 })
	testenv.Until(t, "the guest has ended", func() bool { return len(processes(t, "probe")) == len(before) })
	var left []string
	check(t, filepath.WalkDir(d.home, func(path string, e os.DirEntry, err error) error {
		// The next reader of the registry marks the session as dead and sweeps it.
		if strings.Contains(path, "bawn/run/") && !strings.Contains(path, "run/sessions") && !strings.Contains(path, "run/sockets") {
			left = append(left, path)
		}
		if errors.Is(err, fs.ErrPermission) { // what the guest wrote in its git directory is sealed
			return fs.SkipDir
		}
		return err
	}))
	if len(left) > 0 {
		t.Errorf("%q are left", left)
	}
}

// TestLoad carries thousands of connections, two hundred at a time, through
// one session: none is lost, and the relay has no more files open afterwards.
func TestLoad(t *testing.T) {
	d := newAccount(t)
	const at = "allowed.test:7777"
	count := strconv.Itoa(testenv.Some(10_000, 3_000))
	s := d.openTerminal(t, allow(at), "$PROBE many 200 50 "+at+"; echo warm; read x; $PROBE many "+count+" 200 "+at+"; echo loaded; read x")
	s.see("warm")
	r := relay(t)
	var before int
	var since time.Time
	testenv.Until(t, "the relay rests", func() bool {
		if n := descriptors(t, r.pid); n != before {
			before, since = n, time.Now()
		}
		return time.Since(since) > 100*time.Millisecond
	})
	sockets, begin := kinds(t, r.pid)["socket"], time.Now()
	s.say("")
	s.within(patience, "loaded")
	took := time.Since(begin)
	if !strings.Contains(s.screen(), count+" of "+count) {
		t.Errorf("some were lost:\n%s", s.screen())
	}
	testenv.Until(t, "the relay has closed its sockets", func() bool { return kinds(t, r.pid)["socket"] <= sockets })
	testenv.Until(t, "the relay has closed its files", func() bool { return descriptors(t, r.pid) <= before })
	t.Logf("%v, %d descriptors before, %v after, at most %d KiB", took, before, kinds(t, r.pid), memory(t, r.pid))
	s.say("")
	s.end()
}

// TestSlowUpstreams lets fifty requests hang on hosts that drip, flood and
// never come to the end of their headers. Others go on as before.
func TestSlowUpstreams(t *testing.T) {
	d := newAccount(t)
	flags := append(allow("slow.test", "allowed.test"), "--http", "api.test * /**", "--http", "other.test GET /**")
	s := d.openTerminal(t, flags, strings.Join([]string{
		"for i in 1 2 3 4 5 6 7 8 9 10; do",
		"curl -s -m 60 -o /dev/null http://slow.test/slow & curl -s -m 60 -o /dev/null https://slow.test/slow &",
		"curl -s -m 60 -o /dev/null https://other.test/slow & curl -s -m 60 --limit-rate 1k -o /dev/null https://other.test/endless &",
		"curl -s -m 60 -o /dev/null http://other.test/headers & done; sleep 1; echo busy;",
		"for i in 1 2 3 4 5 6 7 8 9 10; do for u in http://allowed.test/ https://allowed.test/ https://api.test/; do",
		"curl -sS -m 20 -o /dev/null -w 'good %{http_code} %{time_total}\n' $u; done; done; echo measured; read x; kill $(jobs -p)",
	}, " "))
	s.within(patience, "measured")
	var times []float64
	for line := range strings.Lines(s.screen()) {
		var code int
		var seconds float64
		if n, _ := fmt.Sscanf(line, "good %d %g", &code, &seconds); n == 2 && code == 200 {
			times = append(times, seconds)
		}
	}
	if len(times) != 30 {
		t.Fatalf("%d of 30 good requests were answered:\n%s", len(times), s.screen())
	}
	slices.Sort(times)
	if kib := memory(t, relay(t).pid); kib > 256<<10 {
		t.Errorf("the relay took %d KiB", kib)
	}
	t.Logf("good requests took %v s in the middle, %v s at worst, the relay %d KiB", times[15], times[29], memory(t, relay(t).pid))
	s.say("")
	s.end()
}

// kill ends a process that the outside started for this test.
func (d *account) kill(t testing.TB, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && err != syscall.ESRCH {
		t.Error(err)
	}
}
