package sandboxtest

import (
	"bufio"
	"io"
	"os/exec"
	"sync"
	"syscall"
	"testing"
)

// A hostProcess is one of the host's that nobody in a sandbox may reach. It
// records every signal that it gets.
type hostProcess struct {
	f    *Fixtures
	mu   sync.Mutex
	cmd  *exec.Cmd
	life io.Closer // its standard input, whose end ends it
	got  []string
	end  bool
}

func startHost(t testing.TB, f *Fixtures) *hostProcess {
	h := &hostProcess{f: f}
	check(t, h.start())
	t.Cleanup(h.stop)
	return h
}

// start starts the process and waits until it is ready.
func (h *hostProcess) start() error {
	cmd := exec.Command(h.f.Victim, "idle", h.f.PIDMark)
	cmd.Env = append(h.f.environ(), "HOSTENV=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if h.f.UID != Self().UID {
		cmd.SysProcAttr.Credential = h.f.credential()
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	life, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	lines := bufio.NewScanner(out)
	lines.Scan()
	h.mu.Lock()
	h.cmd, h.life, h.got, h.end = cmd, life, nil, false
	h.mu.Unlock()
	go h.listen(cmd, lines)
	return nil
}

func (h *hostProcess) listen(cmd *exec.Cmd, lines *bufio.Scanner) {
	for lines.Scan() {
		h.mu.Lock()
		h.got = append(h.got, lines.Text())
		h.mu.Unlock()
	}
	_ = cmd.Wait()
	h.mu.Lock()
	h.end = true
	h.mu.Unlock()
}

func (h *hostProcess) pid() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.cmd.Process.Pid
}

// harmed says what has reached the process.
func (h *hostProcess) harmed() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var list []string
	if h.end {
		list = append(list, "the host's process has ended")
	}
	for _, s := range h.got {
		list = append(list, "the host's process got: "+s)
	}
	return list
}

// heal starts it again, or forgets what it got.
func (h *hostProcess) heal() error {
	h.mu.Lock()
	ended := h.end
	h.got = nil
	h.mu.Unlock()
	if ended {
		return h.start()
	}
	return nil
}

func (h *hostProcess) stop() {
	h.life.Close()
	_ = h.cmd.Process.Kill()
}
