package executor

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// start starts the command from this thread, as the leader of its own session.
// So no command can join the executor's process group, and a terminal controls
// only its own.
func (b *job) start(d *Do, stdio []uintptr, zone []Rlimit) error {
	program, err := find(d.Argv[0], d.Dir, pathOf(d.Env))
	if err != nil {
		return err
	}
	if d.Statement {
		if b.state, err = newState(); err != nil {
			return err
		}
		stdio = append(stdio, uintptr(b.state)) // becomes 3, see StatementArgv
	}
	dir, err := enter(d.Dir)
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	limits := append(d.Limits.rlimits(), zone...)
	limited := len(limits) > 0
	b.pid, err = syscall.ForkExec(program, d.Argv, &syscall.ProcAttr{
		Dir: fdPath(dir), Env: d.Env, Files: stdio,
		Sys: &syscall.SysProcAttr{Setsid: true, Setctty: d.Terminal, Ctty: d.Control, Ptrace: limited},
	})
	if err != nil || !limited {
		return err
	}
	return limit(b.pid, limits)
}

// enter opens the directory of a command. The name was judged: a link to
// another place has to be judged by that place's name.
func enter(dir string) (int, error) {
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	real, err := os.Readlink(fdPath(fd))
	if err == nil && real != dir {
		err = unix.ELOOP
	}
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// fdPath names an open file, also in the child that inherits it until it
// executes the command (proc_pid_fd(5)).
func fdPath(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }

// limit sets the limits of a child that has stopped before its first own
// instruction (PTRACE_TRACEME, ptrace(2)), and lets it go.
func limit(pid int, limits []Rlimit) error {
	var ws unix.WaitStatus
	if _, err := again(func() (int, error) { return unix.Wait4(pid, &ws, 0, nil) }); err != nil {
		return err
	}
	if !ws.Stopped() {
		return errors.New("it ended before its limits were set")
	}
	set := make(chan error)
	go func() { set <- setLimits(pid, limits) }() // the filter of this thread keeps it from doing so
	err := <-set
	if err == nil {
		err = unix.PtraceDetach(pid)
	}
	if err != nil {
		_ = unix.Kill(pid, unix.SIGKILL)
		_, _ = again(func() (int, error) { return unix.Wait4(pid, &ws, 0, nil) })
		return fmt.Errorf("set the limits: %w", err)
	}
	return nil
}

// A Rlimit is a limit of one process, soft and hard (getrlimit(2)).
type Rlimit struct {
	Resource int    // RLIMIT_…
	Value    uint64 // where the process has a lower one, that stays
}

// rlimits are those that l states for one command.
func (l Limits) rlimits() []Rlimit {
	var list []Rlimit
	if l.OpenFiles > 0 {
		list = append(list, Rlimit{unix.RLIMIT_NOFILE, uint64(l.OpenFiles)})
	}
	if l.FileSizeMB > 0 {
		list = append(list, Rlimit{unix.RLIMIT_FSIZE, uint64(l.FileSizeMB) << 20})
	}
	return list
}

func setLimits(pid int, limits []Rlimit) error {
	for _, r := range limits {
		var now unix.Rlimit
		if err := unix.Prlimit(pid, r.Resource, nil, &now); err != nil {
			return err
		}
		v := min(r.Value, now.Max) // the zone's limit stays the bound
		if err := unix.Prlimit(pid, r.Resource, &unix.Rlimit{Cur: v, Max: v}, nil); err != nil {
			return err
		}
	}
	return nil
}

func again(f func() (int, error)) (int, error) {
	for {
		if n, err := f(); !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}

// pathOf returns the PATH of env; "" is the directory itself (environ(7)).
func pathOf(env []string) string {
	for _, kv := range env {
		if value, ok := strings.CutPrefix(kv, "PATH="); ok {
			return value
		}
	}
	return "/usr/local/bin:/usr/bin:/bin"
}

// find returns the program that name means in dir, as execvp(3) finds it.
func find(name, dir, path string) (string, error) {
	if strings.Contains(name, "/") {
		return absolute(name, dir), nil // execve reports the error
	}
	denied := false
	for _, place := range strings.Split(path, ":") {
		program := absolute(filepath.Join(place, name), dir)
		info, err := os.Stat(program)
		if err != nil || info.IsDir() {
			continue
		}
		if unix.Access(program, unix.X_OK) == nil {
			return program, nil
		}
		denied = true
	}
	if denied {
		return "", unix.EACCES
	}
	return "", unix.ENOENT
}

func absolute(name, dir string) string {
	if strings.HasPrefix(name, "/") {
		return name
	}
	return dir + "/" + name
}

// why says in words what kept a command from being started.
func why(d *Do, err error) string {
	if info, derr := os.Stat(d.Dir); derr != nil || !info.IsDir() {
		return fmt.Sprintf("directory %q can't be entered in the execution zone", d.Dir)
	}
	if errors.Is(err, unix.ENOENT) {
		return "there is no such program in the execution zone"
	}
	return err.Error()
}

// errnoOf returns the errno in err, or EIO.
func errnoOf(err error) syscall.Errno {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return errno
	}
	return unix.EIO
}
