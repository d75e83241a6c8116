package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// A sandbox is words that stand before those of a command, of which there may be none.
// In them {HOME} and {PROJECT} stand for the scratch home and its project.
type sandbox struct {
	name  string
	words []string
	undo  []string // a command that takes back what a session has removed, or none
}

// withBawn is what the attacks are for. It passes the variables that they need.
func withBawn(bawn string) sandbox {
	words := []string{bawn, "run", "-q"}
	for _, name := range []string{"VICTIM", "SERVICE", "DROP", "LINGER"} {
		words = append(words, "--env", name)
	}
	return sandbox{"with Bawn", append(words, "--"), []string{bawn, "undo", "--yes"}}
}

// A row says in which of the sandboxes an attack worked.
type row struct {
	what   string
	worked []bool
	undone bool // what Bawn did: it took it back
}

// tryAll runs each attack in each sandbox, each time in a home of its own.
func tryAll(in []sandbox) ([]row, error) {
	var rows []row
	for i, a := range attacks {
		r := row{what: a.what, undone: a.undo}
		for j, s := range in {
			worked, err := try(a, s, i*len(in)+j)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", a.what, err)
			}
			r.worked = append(r.worked, worked)
		}
		rows = append(rows, r)
	}
	return rows, nil
}

// try runs one attack, and reports whether it worked. No other try has its number.
func try(a attack, s sandbox, number int) (bool, error) {
	w, err := newWorld(number)
	if err != nil {
		return false, err
	}
	defer w.close()
	places := strings.NewReplacer("{HOME}", w.home, "{PROJECT}", filepath.Join(w.home, "project"))
	var words []string
	for _, word := range s.words {
		words = append(words, places.Replace(word))
	}
	out := w.user(append(words, "sh", "-c", a.line)...)
	if a.undo && s.undo != nil {
		w.user(s.undo...)
	}
	return a.worked(w, out), nil
}

// A world is a scratch home with a project, keys that are invented, a process and two
// servers.
type world struct {
	home    string
	victim  *exec.Cmd
	ended   chan struct{}
	service net.Listener
	drop    net.Listener
	linger  string

	mu   sync.Mutex
	sent strings.Builder // what was sent to drop
}

var files = map[string]string{
	".ssh/id_ed25519":      "INVENTED-SSH-KEY\n",
	".ssh/authorized_keys": "",
	".ssh/config":          "Host *\n",
	".aws/credentials":     "[default]\naws_secret_access_key = INVENTED-AWS-KEY\n",
	".bashrc":              "# yours\n",
	".gitconfig":           "[user]\n\tname = Ada\n\temail = ada@example.org\n[init]\n\tdefaultBranch = main\n",
	"other/main.go":        "package other\n",
	"project/main.go":      "package invented\n",
}

func newWorld(number int) (*world, error) {
	// Not in /tmp: a session has one of its own.
	home, err := os.MkdirTemp("/var/tmp", "bawn-attack-")
	if err != nil {
		return nil, err
	}
	w := &world{home: home, ended: make(chan struct{}), linger: fmt.Sprintf("600.%d%04d", os.Getpid(), number)}
	if err := errors.Join(w.write(), w.serve()); err != nil {
		w.close()
		return nil, err
	}
	w.victim = exec.Command("sleep", "600")
	w.victim.Env = []string{"PATH=" + os.Getenv("PATH"), "PASSWORD=INVENTED-PASSWORD"}
	if err := w.victim.Start(); err != nil {
		w.close()
		return nil, err
	}
	go func() {
		_ = w.victim.Wait() // it was killed
		close(w.ended)
	}()
	return w, nil
}

// write makes the home: files, a repository with a remote, work that is not committed.
func (w *world) write() error {
	for name, text := range files {
		path := filepath.Join(w.home, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return err
		}
	}
	said := w.user("sh", "-c", `git init -q && git add . && git commit -q -m first && git init -q --bare ../remote.git &&
git remote add origin ../remote.git && git push -q origin HEAD:main && echo draft >draft.txt && mkdir -p .git/hooks && echo made`)
	if !strings.HasSuffix(said, "made\n") {
		return fmt.Errorf("make a repository: %s", said)
	}
	return nil
}

// serve starts a service on the loopback and a stranger's server at another address of
// this machine, or at the loopback where it has no other.
func (w *world) serve() error {
	var err error
	if w.service, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return err
	}
	if w.drop, err = net.Listen("tcp", net.JoinHostPort(ownAddress(), "0")); err != nil {
		return err
	}
	go http.Serve(w.service, http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { fmt.Fprintln(rw, "INVENTED-CUSTOMERS") }))
	go http.Serve(w.drop, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(io.LimitReader(r.Body, 1<<16))
		w.mu.Lock()
		defer w.mu.Unlock()
		w.sent.Write(body)
	}))
	return nil
}

func ownAddress() string {
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return "127.0.0.1"
	}
	for _, a := range addresses {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil && n.IP.IsGlobalUnicast() {
			return n.IP.String()
		}
	}
	return "127.0.0.1"
}

// user runs a command in the project as the user whose home this is, and returns what
// it has printed.
func (w *world) user(words ...string) string {
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Dir = filepath.Join(w.home, "project")
	cmd.Env = []string{"HOME=" + w.home, "PATH=" + os.Getenv("PATH"), "LC_ALL=C", "TERM=dumb", "DEPLOY_TOKEN=INVENTED-TOKEN", "LINGER=" + w.linger}
	if w.victim != nil {
		cmd.Env = append(cmd.Env, fmt.Sprintf("VICTIM=%d", w.victim.Process.Pid), "SERVICE=http://"+w.service.Addr().String(), "DROP=http://"+w.drop.Addr().String())
	}
	out, _ := cmd.CombinedOutput() // how it ended is no matter: the effect is
	return string(out)
}

func (w *world) received(text string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Contains(w.sent.String(), text)
}

// victimEnded gives a signal that was sent a moment to arrive.
func (w *world) victimEnded() bool {
	select {
	case <-w.ended:
		return true
	case <-time.After(5 * time.Second):
		return false
	}
}

// lingers looks for the process that was to stay behind, which may not have become
// "sleep" yet, and ends it.
func (w *world) lingers() bool {
	for range 100 {
		if w.lingersNow() {
			return true
		}
		time.Sleep(50 * time.Millisecond)
	}
	return false
}

func (w *world) lingersNow() bool {
	found := false
	processes, _ := filepath.Glob("/proc/[0-9]*")
	for _, p := range processes {
		words, err := os.ReadFile(filepath.Join(p, "cmdline"))
		if err != nil || string(words) != "sleep\x00"+w.linger+"\x00" {
			continue
		}
		found = true
		var pid int
		if _, err := fmt.Sscanf(filepath.Base(p), "%d", &pid); err == nil {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	return found
}

func (w *world) close() {
	if w.victim != nil {
		_ = w.victim.Process.Kill()
		<-w.ended
	}
	for _, l := range []net.Listener{w.service, w.drop} {
		if l != nil {
			l.Close()
		}
	}
	// A session leaves a sealed directory, of mode 0000.
	_ = exec.Command("chmod", "-R", "u+rwx", w.home).Run()
	_ = os.RemoveAll(w.home)
}
