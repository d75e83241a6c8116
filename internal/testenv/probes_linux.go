package testenv

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
)

// canBeUser wants a way to run a program as somebody without privileges.
func canBeUser() error {
	if os.Geteuid() != 0 {
		return nil
	}
	return startWith(&syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}})
}

// userNamespace makes the namespaces of a sandbox in one go.
func userNamespace() error {
	own := func(host int) []syscall.SysProcIDMap {
		return []syscall.SysProcIDMap{{ContainerID: host, HostID: host, Size: 1}}
	}
	return startWith(&syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID |
			syscall.CLONE_NEWNET | syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS,
		UidMappings: own(os.Geteuid()),
		GidMappings: own(os.Getegid()),
	})
}

func startWith(attr *syscall.SysProcAttr) error {
	return start(func(ctx context.Context, name string, args ...string) *exec.Cmd {
		cmd := exec.CommandContext(ctx, name, args...)
		cmd.SysProcAttr = attr
		return cmd
	}, "/bin/true")
}

// onThrowAwayThread runs f on a thread that ends with it, so that what f does
// to its thread, and can't be undone, reaches nobody else. The process's first
// thread never ends, and stands for the process where others look at it: it is
// held while another is found.
func onThrowAwayThread(f func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		if syscall.Gettid() == syscall.Getpid() {
			done <- onThrowAwayThread(f)
			runtime.UnlockOSThread()
			return
		}
		done <- f() // never unlocked: the thread ends with the goroutine
	}()
	return <-done
}

// cgroupLimits makes a group below our own, limits memory and processes in
// it, and removes it again.
func cgroupLimits() error {
	table, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return err
	}
	return errors.Join(
		limitIn(string(table), "memory", "memory.max", "memory.limit_in_bytes"),
		limitIn(string(table), "pids", "pids.max", "pids.max"),
	)
}

// limitIn wants one group directory of a controller that takes a limit: below
// our own group or at the top, in the unified hierarchy or the controller's.
func limitIn(table, controller, v2File, v1File string) error {
	const unified = "/sys/fs/cgroup"
	own := filepath.Join(unified, controller)
	var errs []error
	for _, try := range []struct{ dir, file string }{
		{groupDir(unified, table, ""), v2File},
		{unified, v2File},
		{groupDir(own, table, controller), v1File},
	} {
		err := limitBelow(try.dir, try.file)
		if err == nil {
			return nil
		}
		errs = append(errs, err)
	}
	return fmt.Errorf("%s: %w", controller, errors.Join(errs...))
}

// groupDir finds our own group of a controller ("" for the unified hierarchy)
// in the text of /proc/self/cgroup, see cgroups(7).
func groupDir(mount, table, controller string) string {
	for line := range strings.Lines(table) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(f) == 3 && slices.Contains(strings.Split(f[1], ","), controller) {
			return filepath.Join(mount, f[2])
		}
	}
	return ""
}

// limitBelow writes a limit, small enough for every controller, in a group
// that it makes and removes.
func limitBelow(dir, file string) error {
	if _, err := os.Stat(filepath.Join(dir, "cgroup.procs")); err != nil {
		return err
	}
	group := filepath.Join(dir, fmt.Sprintf("bawn-testenv-%d", os.Getpid()))
	if err := os.Mkdir(group, 0o755); err != nil {
		return err
	}
	defer os.Remove(group)
	f, err := os.OpenFile(filepath.Join(group, file), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteString("1048576")
	return err
}
