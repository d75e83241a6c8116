package launch

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"

	"github.com/bawn-dev/bawn/internal/config"
	"github.com/bawn-dev/bawn/internal/verb"
)

// Where a guest sees that it is one: its first process is bawn's, and a
// filter holds it (proc_pid_comm(5), proc_pid_status(5)). A guest may hide
// both, and gains nothing by it but a worse explanation.
const (
	firstName = "/proc/1/comm"
	ownStatus = "/proc/self/status"
)

// Inside says in which session this very bawn runs, or "" outside of any.
func Inside(e *Env) string {
	if id := e.Getenv(SessionVariable); id != "" {
		return "session " + id
	}
	return belowBawn()
}

// belowBawn is Inside by what the kernel says, which stays as it is.
var belowBawn = sync.OnceValue(func() string {
	if name, err := os.ReadFile(firstName); os.Getpid() == 1 || err != nil || string(name) != "bawn\n" {
		return ""
	}
	if status, err := os.ReadFile(ownStatus); err != nil || !strings.Contains(string(status), "\nSeccomp:\t2\n") {
		return ""
	}
	return "a session"
})

// HiddenState reports whether err may come of a file that a guest does not
// have.
func HiddenState(err error) bool {
	var ce *verb.Error
	var errs config.Errors
	return errors.As(err, &ce) && (ce.Code == verb.ExitInternal || errors.As(err, &errs) && errs.Forbidden())
}

// nested explains why a session could not be started from within another:
// each of the reasons found first (no log, no namespace) would mislead.
func nested(e *Env, err error) error {
	where := Inside(e)
	if where == "" || !HiddenState(err) {
		return err
	}
	return &verb.Error{
		Code: verb.ExitDenied,
		Err:  fmt.Errorf("this is a guest already, in %s, and no session starts inside another: its sandbox refuses a second one's namespaces and filter, and bawn's log is outside", where),
		Hint: "run the command without bawn: the sandbox around you holds for it too; what you lack is granted by who started it, outside",
	}
}
