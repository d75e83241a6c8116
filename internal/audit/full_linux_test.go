package audit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/bawn-dev/bawn/internal/testenv"
	"golang.org/x/sys/unix"
)

func init() {
	children["limit"] = childLimit
	children["tmpfs"] = childTmpfs
}

// TestFullFile: the file size limit stops a write in its middle, as a full disk
// may, without any privilege.
func TestFullFile(t *testing.T) {
	dir := newLog(t, 3)
	for _, room := range []int{0, 1, 100, 5000} {
		if err := startChild(t, "limit", dir, room).Wait(); err != nil {
			t.Fatalf("with room for %d bytes: %v", room, err)
		}
		if r := verify(t, dir); r.Fault != nil || r.Lag != 0 {
			t.Fatalf("Verify = %+v, %v; want order", r, r.Fault)
		}
	}
}

func childLimit(dir string, room int) error {
	signal.Ignore(unix.SIGXFSZ) // else it ends the process (setrlimit(2))
	l, err := Open(dir, Options{})
	if err != nil {
		return err
	}
	var old unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &old); err != nil {
		return err
	}
	small := unix.Rlimit{Cur: uint64(logSize(dir) + int64(room)), Max: old.Max}
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &small); err != nil {
		return err
	}
	return fillAndHeal(l, dir, unix.EFBIG, func() error { return unix.Setrlimit(unix.RLIMIT_FSIZE, &old) })
}

// TestFullDisk fills a small file system of the test's own.
func TestFullDisk(t *testing.T) {
	testenv.Need(t, "userns")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, t.TempDir(), "0")
	cmd.Env = append(os.Environ(), childEnv+"=tmpfs")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

func childTmpfs(mount string, _ int) error {
	if err := unix.Mount("tmpfs", mount, "tmpfs", 0, "size=128k,mode=0700"); err != nil {
		return err
	}
	dir := filepath.Join(mount, "audit")
	l, err := Open(dir, Options{})
	if err != nil {
		return err
	}
	if err := fillAndHeal(l, dir, unix.ENOSPC, func() error { return unix.Mount("", mount, "", unix.MS_REMOUNT, "size=1m") }); err != nil {
		return err
	}
	return tornOnFullDisk(l, dir, mount)
}

// fillAndHeal appends until it fails with want, checks that the log is in order
// and stays so, and that appends work again after heal.
func fillAndHeal(l *Log, dir string, want error, heal func() error) error {
	e := event("/x")
	e.Reason = strings.Repeat("full ", 1000)
	written := 0
	var err error
	for ; err == nil && written < 1000; written++ {
		err = l.Record(context.Background(), e)
	}
	if !errors.Is(err, want) {
		return fmt.Errorf("record %d: %v; want %v", written, err, want)
	}
	size := logSize(dir)
	if err := l.Record(context.Background(), e); !errors.Is(err, want) || logSize(dir) != size {
		return fmt.Errorf("again: %v, %d bytes; want %v, %d bytes", err, logSize(dir), want, size)
	}
	if r, err := Verify(dir); err != nil || r.Fault != nil || r.Lag != 0 {
		return fmt.Errorf("full: %+v, %v", r, err)
	}
	if err := heal(); err != nil {
		return err
	}
	if err := l.Record(context.Background(), e); err != nil {
		return fmt.Errorf("after healing: %w", err)
	}
	return nil
}

// tornOnFullDisk: where the torn bytes can't be kept they stay in the log.
func tornOnFullDisk(l *Log, dir, mount string) error {
	path := filepath.Join(dir, logName)
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	if _, err := f.WriteString(strings.Repeat("half", 4000)); err != nil {
		return err
	}
	filler := filepath.Join(mount, "filler")
	if err := os.WriteFile(filler, make([]byte, 2<<20), 0o600); !errors.Is(err, unix.ENOSPC) {
		return fmt.Errorf("filling: %v", err)
	}
	size := logSize(dir)
	if err := l.Record(context.Background(), event("/x")); !errors.Is(err, unix.ENOSPC) || logSize(dir) != size {
		return fmt.Errorf("torn on a full disk: %v, %d bytes; want %v, %d bytes", err, logSize(dir), unix.ENOSPC, size)
	}
	if kept, err := filepath.Glob(path + ".torn-*"); err != nil || len(kept) > 0 {
		return fmt.Errorf("half a torn file is left: %q, %v", kept, err)
	}
	if err := os.Remove(filler); err != nil {
		return err
	}
	if err := l.Record(context.Background(), event("/x")); err != nil {
		return err
	}
	if r, err := Verify(dir); err != nil || r.Fault != nil || r.Lag != 0 {
		return fmt.Errorf("at the end: %+v, %v", r, err)
	}
	return nil
}
