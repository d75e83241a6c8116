package rawproc

import (
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// TestApartChangesNothingHere leaves the child's directory and umask to the
// child.
func TestApartChangesNothingHere(t *testing.T) {
	before, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for range 100 {
		p := &Program{}
		p.Call("chdir", unix.SYS_CHDIR, "/")
		p.Call("umask", unix.SYS_UMASK, 0o777)
		if err := Apart(p); err != nil {
			t.Fatal(err)
		}
	}
	mask := unix.Umask(0o022)
	unix.Umask(mask)
	if after, _ := os.Getwd(); after != before || mask == 0o777 {
		t.Errorf("directory %q became %q, umask %o", before, after, mask)
	}
}

func TestApartNamesTheStepThatFailed(t *testing.T) {
	p := &Program{}
	p.Call("getpid", unix.SYS_GETPID)
	p.Call("close nothing", unix.SYS_CLOSE, -1)
	var se *StepError
	if err := Apart(p); !errors.As(err, &se) || se.Step != "close nothing" || se.Errno != unix.EBADF {
		t.Errorf("got %v, want EBADF from the second step", err)
	}
}
