package native

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/linux/sigcatch"
	"github.com/bawn-dev/bawn/internal/sandbox/supervise"
	"github.com/bawn-dev/bawn/internal/testenv"
)

// inotifyAfter is set in a process whose refreshers turn to inotify after that time,
// inotifyLeft to the instances and watches that its user may have.
const (
	inotifyAfter = "BAWN_TEST_INOTIFY_AFTER"
	inotifyLeft  = "BAWN_TEST_INOTIFY_LEFT"
	caught       = "BAWN_TEST_CAUGHT" // is set where signals are caught as bawn run catches them
)

const enoughLeft = "128 1000"

func init() {
	if d, err := time.ParseDuration(os.Getenv(inotifyAfter)); err == nil {
		supervise.UntilInotify = d
	}
	if os.Getenv(caught) != "" {
		if _, err := sigcatch.Catch([]syscall.Signal{syscall.SIGUSR2}, 1); err != nil {
			panic(err)
		}
	}
}

// TestEveryWatcher runs the refresher's tests again where inotify tells of changes,
// where it takes over meanwhile, and where none of its instances is left, as with
// more than 128 sessions of one user: in a user namespace whose limit is 0. By
// themselves, they are told by signals.
func TestEveryWatcher(t *testing.T) {
	testenv.ByUser(t)
	testenv.Need(t, "userns", "notify")
	for name, env := range map[string][]string{
		"inotify":              {inotifyAfter + "=0s", inotifyLeft + "=" + enoughLeft},
		"inotify takes over":   {inotifyAfter + "=30ms", inotifyLeft + "=" + enoughLeft},
		"no instance is left":  {inotifyAfter + "=0s", inotifyLeft + "=0 1000"},
		"signals are caught":   {caught + "=1", inotifyLeft + "=" + enoughLeft},
		"few watches are left": {inotifyAfter + "=0s", inotifyLeft + "=128 2"},
	} {
		t.Run(name, func(t *testing.T) {
			self, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			tests := "^(TestReplacedFileStaysHidden|TestChangedPlacesStayHidden|TestWhoTells)$"
			cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", `set -- "$1" $`+inotifyLeft+` && cd /proc/sys/user && echo $2 >max_inotify_instances && echo $3 >max_inotify_watches && cd "$OLDPWD" && exec "$0" -test.v -test.run "$1"`, self, tests)
			cmd.Env = append(os.Environ(), env...)
			cmd.SysProcAttr = &syscall.SysProcAttr{
				Cloneflags:  syscall.CLONE_NEWUSER,
				UidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}},
				GidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}},
				AmbientCaps: []uintptr{unix.CAP_SYS_RESOURCE}, // to lower a limit of the namespace
			}
			out, err := cmd.CombinedOutput()
			t.Logf("%s", out)
			if err != nil || strings.Count(string(out), "\n--- PASS") != 3 {
				t.Errorf("the refresher does not keep: %v", err)
			}
		})
	}
}

// TestWhoTells shows that the test above tests what it says.
func TestWhoTells(t *testing.T) {
	testenv.Need(t, "userns", "notify")
	_, req := home(t, ".npmrc")
	g := keptGuest(t, req, false)
	if cat(t, g, "/proc/self/comm") == "" {
		t.Error("the guest reads nothing")
	}
	want := os.Getenv(inotifyAfter) != "" && os.Getenv(inotifyLeft) == enoughLeft
	testenv.Until(t, fmt.Sprint("the refresher to be told by inotify: ", want), func() bool { return g.ToldByInotify() == want })
}
