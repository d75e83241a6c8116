package executor

import (
	"errors"
	"fmt"
	"os"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/intent"
)

// maxState is how much a statement's shell may leave, in bytes.
const maxState = 512 << 10

// newState makes the memory into which a statement's shell writes, of a size
// that it can't change.
func newState() (int, error) {
	fd, err := unix.MemfdCreate("state", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return -1, err
	}
	err = unix.Ftruncate(fd, maxState)
	if err == nil {
		_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_SEAL)
	}
	if err != nil {
		return -1, errors.Join(err, unix.Close(fd))
	}
	return fd, nil
}

// report adds a statement's state, and the statement's exit code in place of
// that of the program that wrote it down. Damaged parts are left out.
func (b *job) report(r *changed) {
	if b.state < 0 {
		return
	}
	text, err := b.readState()
	if err != nil {
		return
	}
	ws := unix.WaitStatus(r.Status)
	state, code, ran := readState(text)
	if !ran || ws.Exited() && ws.ExitStatus() == 0 {
		if r.State = state; state != nil && !state.Ended {
			state.Dir = led(state.Dir)
		}
	}
	if ran && ws.Exited() {
		r.Status = uint32(code) << 8
	}
}

// led returns the directory to which links lead: a shell's own name of it may
// go through some, and the next statement starts by no such name.
func led(dir string) string {
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return dir // nothing starts there
	}
	defer unix.Close(fd)
	real, err := os.Readlink(fdPath(fd))
	if err != nil {
		return dir
	}
	return real
}

// readState reads the written state, by the offset that the shell and we share.
func (b *job) readState() ([]byte, error) {
	n, err := unix.Seek(b.state, 0, unix.SEEK_CUR)
	if err != nil || n < 0 || n > maxState {
		return nil, fmt.Errorf("the state has %d bytes; want at most %d", n, maxState)
	}
	text := make([]byte, n)
	got, err := readAt(b.state, text)
	return text[:max(got, 0)], err
}

func readAt(fd int, b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	return unix.Pread(fd, b, 0)
}

// readState reads what StatementArgv's script has written. The state is nil if
// it is damaged; ran says that the statement came to its end, with this code.
func readState(b []byte) (state *intent.State, code int, ran bool) {
	if len(b) == 0 {
		return &intent.State{Ended: true}, 0, false
	}
	parts := strings.Split(string(b), "\x00") // the last one is "" if nothing is cut short
	if len(parts) < 3 || !strings.HasPrefix(parts[1], "/") {
		return nil, 0, false
	}
	code, err := strconv.Atoi(parts[0])
	if err != nil || code < 0 || code > 255 {
		return nil, 0, false
	}
	if parts[len(parts)-1] != "" {
		return nil, code, true
	}
	return &intent.State{Dir: path.Clean(parts[1]), Env: variables(parts[2:])}, code, true
}

// variables drops entries that are no variable, the last command's name, and
// all but the first of a name: no command can be given more (ticket.Digest).
func variables(list []string) []string {
	env := []string{}
	seen := map[string]bool{"_": true}
	for _, kv := range list {
		name, _, set := strings.Cut(kv, "=")
		if set && name != "" && !seen[name] {
			seen[name] = true
			env = append(env, kv)
		}
	}
	return env
}
