package crash_test

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/bawn-dev/bawn/internal/testenv"
)

// randomKills is how often a session of each provider is killed.
var randomKills = testenv.Some(200, 10)

// Sessions are killed at random moments, most while they start. Their guests end
// with them, and after the next commands nothing of theirs is there: no process,
// no socket, no directory.
func TestRandomKills(t *testing.T) {
	for _, provider := range []string{"native", "bwrap", "landlock"} {
		t.Run(provider, func(t *testing.T) {
			testenv.Need(t, "userns", "landlock", "bwrap")
			r := newAccount(t)
			tmp := filepath.Join(r.Home, "tmp")
			check(t, os.Mkdir(tmp, 0o700))
			r.Env = append(r.Env, "TMPDIR="+tmp)
			seconds := strconv.Itoa(1_000_000 + os.Getpid())
			guests := 0
			for i := range randomKills {
				cmd := r.Command(context.Background(), "bawn", "run", "--provider", provider, "--net", "none", "--quiet", "--", "/bin/sleep", seconds)
				check(t, cmd.Start())
				if i == 0 { // one at least has its guest, however slow the machine is
					r.until("a guest", func() bool { return r.guests(seconds) > 0 })
				}
				time.Sleep(time.Duration(rand.IntN(600)) * time.Millisecond) // the moment is what is tried
				guests += r.guests(seconds)
				check(t, cmd.Process.Kill())
				_ = cmd.Wait() // it was killed
			}
			if guests == 0 {
				t.Error("no guest ran when its session was killed: nothing is shown")
			}
			r.run("bawn", "run", "--provider", provider, "--net", "none", "--quiet", "--", "/bin/true")
			var left []string
			defer func() {
				if t.Failed() {
					t.Logf("left: %q", left)
				}
			}()
			r.until("the end of all that the sessions had", func() bool {
				r.run("bawn", "ps")
				left = append(r.processesWith(r.Home), r.processesWith("/bin/sleep\x00"+seconds)...)
				for _, pattern := range []string{
					filepath.Join(r.runtime(), "sockets", "*"), filepath.Join(r.runtime(), "sessions", "*"), filepath.Join(r.runtime(), "*.sock"),
					filepath.Join(r.cache, "split", "*"), filepath.Join(tmp, "*"),
				} {
					found, err := filepath.Glob(pattern)
					check(t, err)
					left = append(left, found...)
				}
				return len(left) == 0
			})
		})
	}
}

// guests counts the guests that sleep so long. The words of their bawn and of its
// other processes hold the same, behind other ones.
func (r *account) guests(seconds string) (n int) {
	for _, p := range r.processesWith("/bin/sleep\x00" + seconds) {
		if _, words, _ := strings.Cut(p, " "); words == "/bin/sleep "+seconds+" " {
			n++
		}
	}
	return n
}

// processesWith lists the processes in whose words or environment a text is.
func (r *account) processesWith(text string) (list []string) {
	for _, pid := range processes() {
		if _, alive := startOf(pid); !alive || pid == os.Getpid() {
			continue
		}
		dir := filepath.Join("/proc", strconv.Itoa(pid))
		words, _ := os.ReadFile(filepath.Join(dir, "cmdline")) // it may have ended
		env, _ := os.ReadFile(filepath.Join(dir, "environ"))
		if strings.Contains(string(words)+string(env), text) {
			list = append(list, strconv.Itoa(pid)+" "+strings.ReplaceAll(string(words), "\x00", " "))
		}
	}
	return list
}
