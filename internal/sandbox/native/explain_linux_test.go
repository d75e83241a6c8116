package native

import (
	"errors"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/linux/rawproc"
	"github.com/bawn-dev/bawn/internal/sandbox/kernel"
)

func TestExplainNamesTheRemedy(t *testing.T) {
	cases := map[string]struct {
		err  error
		want string
	}{
		"proc":    {&rawproc.StepError{Step: "mount proc on /proc", Errno: unix.EPERM}, "systempaths=unconfined"},
		"old":     {&rawproc.StepError{Step: "load the seccomp filter", Errno: unix.EINVAL}, "5.19"},
		"nested":  {&rawproc.StepError{Step: "load the seccomp filter", Errno: unix.EBUSY}, "supervisor"},
		"swapped": {&rawproc.StepError{Step: "find the same /w as before", Errno: unix.ESTALE}, "try again"},
		"overlay": {&rawproc.StepError{Step: kernel.OverlayStep + "/w", Errno: unix.EPERM}, "without --copy"},
		"upper":   {&rawproc.StepError{Step: kernel.OverlayStep + "/w", Errno: unix.EINVAL}, "no other file system"},
		"users":   {unix.ENOSPC, "max_user_namespaces"},
		"closed":  {unix.EPERM, "user namespaces"},
		"other":   {errors.New("x"), "doctor"},
	}
	for name, c := range cases {
		var se *kernel.StartError
		if err := explain(c.err); !errors.As(err, &se) || !strings.Contains(se.Remedy, c.want) || !errors.Is(err, c.err) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
