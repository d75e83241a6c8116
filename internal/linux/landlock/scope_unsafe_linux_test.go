package landlock

import (
	"os"
	"os/exec"
	"runtime"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/testenv"
)

// onThread calls f on a thread that ends with it.
func onThread(f func() error) error {
	result := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked
		if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
			result <- err
			return
		}
		result <- f()
	}()
	return <-result
}

// permissive enters a domain that grants every right everywhere, with the
// scopes given.
func permissive(rights, scoped uint64) error {
	attr := Attr{FS: rights, Scoped: scoped}
	ruleset, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0)
	if errno != 0 {
		return errno
	}
	defer unix.Close(int(ruleset))
	if rights != 0 {
		root, err := unix.Open("/", unix.O_PATH|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(root)
		rule := NewPathBeneath(rights)
		*rule.FD() = int32(root)
		if _, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, ruleset, unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(rule)), 0, 0, 0); errno != 0 {
			return errno
		}
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, ruleset, 0, 0); errno != 0 {
		return errno
	}
	return nil
}

// TestScopedThreadsMoveFiles: below a domain that has to do with files, one
// that says nothing of them refuses to link from one directory into another.
// ScopeThread does not.
func TestScopedThreadsMoveFiles(t *testing.T) {
	testenv.Need(t, "scope")
	dir := t.TempDir()
	for _, name := range []string{"a", "b"} {
		if err := os.Mkdir(dir+"/"+name, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(dir+"/a/f", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	link := func(name string, scope func() error) error {
		return onThread(func() error {
			if err := permissive(1<<fsRights[len(fsRights)-1]-1, 0); err != nil {
				return err
			}
			if err := scope(); err != nil {
				return err
			}
			return unix.Link(dir+"/a/f", dir+"/b/"+name)
		})
	}
	if err := link("scoped", ScopeThread); err != nil {
		t.Error(err)
	}
	if err := link("control", func() error { return permissive(0, scopeSignal) }); err != unix.EXDEV {
		t.Errorf("control: a domain without the right: %v", err)
	}
}

// TestScopedThreadsSignalNobodyOutside: not even a child of their process.
func TestScopedThreadsSignalNobodyOutside(t *testing.T) {
	testenv.Need(t, "scope")
	child := exec.Command("sleep", "60")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = child.Process.Kill(), child.Wait() }()
	pid := child.Process.Pid
	if err := onThread(func() error { return unix.Kill(pid, 0) }); err != nil {
		t.Fatalf("control: %v", err)
	}
	err := onThread(func() error {
		if err := ScopeThread(); err != nil {
			return err
		}
		return unix.Kill(pid, 0)
	})
	if err != unix.EPERM {
		t.Errorf("got %v, want EPERM", err)
	}
}
