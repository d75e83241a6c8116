package sandboxtest

import (
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/bawn-dev/bawn/internal/testenv"
	"github.com/bawn-dev/bawn/internal/testenv/testhome"
)

// TestBawn does ordinary work inside "bawn run".
func TestBawn(t *testing.T) { worksIn(t, knownDifferences) }

// TestBawnBwrap does the same in sandboxes of bubblewrap.
func TestBawnBwrap(t *testing.T) {
	testenv.Whole(t)
	testenv.Need(t, "bwrap")
	known := maps.Clone(knownDifferences)
	known["arguments as they are"] = "words that are no UTF-8 have no ticket"
	worksIn(t, known, "--provider", "bwrap")
}

func worksIn(t *testing.T, known map[string]string, flags ...string) {
	testenv.Need(t, "userns", "landlock", "seccomp", "notify")
	bawn := append(buildBawn(t), flags...)
	run := append(slices.Clip(bawn), "--")
	// With caches of its own every workspace compiles the standard library again.
	work := keeping(bawn, func(dir string, stdin io.Reader, argv ...string) (string, string, int) {
		words := append(slices.Clip(bawn), "--caches", "shared")
		if shelf := argv[len(argv)-1]; strings.Contains(shelf, "/bawn-test-") {
			words = append(words, "--ro", shelf) // it lies in the closed home
		}
		return Wrapped(append(words, "--")...)(dir, stdin, argv...)
	})
	t.Run("work below home", func(t *testing.T) { Work(t, WorkDir(t), work, known) })
	if len(flags) == 0 && !testenv.Short() { // it takes a while, and shows what the kernel does
		t.Run("work below tmp", func(t *testing.T) { Work(t, workDirBelow(t, "/tmp"), work, known) })
	}
	t.Run("terminal", func(t *testing.T) { atTerminal(t, run, knownAtTerminal) })
	t.Run("itself", func(t *testing.T) { ofItself(t, bawn) })
}

// knownDifferences are what a guest sees otherwise than an unsandboxed program;
// docs/dev/limits.md lists them for users.
var knownDifferences = map[string]string{
	"calls: removed-directory":                       "no file can be made relative to a directory that was removed",
	"calls: interrupted without restart":             "a signal whose handler does not restart calls can interrupt open, mkdir and rename (seccomp_unotify(2))",
	"calls: magic":                                   "paths through the links of another process's /proc directory are not followed for writing",
	"calls: dirfds":                                  "openat2 is ENOSYS",
	"calls: errors":                                  "openat2 is ENOSYS",
	"git: init bare in the workspace":                "bare repositories are made in /tmp alone",
	"git: init bare in place":                        "bare repositories are made in /tmp alone",
	"git: worktrees of a bare repository":            "a bare repository of the host's can be read, not written",
	"git: git directory elsewhere in the workspace":  "a git directory that is no .git can be read, not written",
	"git: write to a repository below the workspace": "a repository of the host's that is not the session's own can be read, not written",
	"git: objects that a repository has":             "the guest borrows the host's objects: its own git directory has but new ones",
	"long paths":                                     "no path, counted from /, is longer than PATH_MAX",
}

// knownAtTerminal are what the guest's own terminal can't do.
var knownAtTerminal = map[string]string{
	"typing ahead":         "keys typed while a guest runs that does not read them are gone when it ends",
	"lines through a pipe": "in a pipeline the terminal is raw once the guest reads it",
}

// TestTerminalUnsandboxed shows that what is wanted of a guest's terminal is what
// happens unsandboxed.
func TestTerminalUnsandboxed(t *testing.T) { atTerminal(t, nil, nil) }

// buildBawn builds the program and returns the words "bawn run", with state,
// configuration and caches of its own.
func buildBawn(t *testing.T) []string {
	t.Helper()
	dir := WorkDir(t)
	bin := filepath.Join(dir, "bawn")
	if err := testhome.Programs(dir, "cmd/bawn"); err != nil {
		t.Fatal(err)
	}
	words := []string{"env", "--default-signal=HUP"} // the process that started the test may ignore it
	for _, name := range []string{"STATE", "CONFIG", "CACHE"} {
		own := filepath.Join(dir, name)
		if err := os.Mkdir(own, 0o700); err != nil {
			t.Fatal(err)
		}
		words = append(words, "XDG_"+name+"_HOME="+own)
	}
	return append(words, bin, "run", "-q")
}

func newCaller(t *testing.T, words []string) caller {
	t.Helper()
	env := slices.DeleteFunc(os.Environ(), func(kv string) bool {
		return strings.HasPrefix(kv, "TMUX") || strings.HasPrefix(kv, "PS1=") || strings.HasPrefix(kv, "SHELL=")
	})
	return caller{words: words, dir: WorkDir(t), env: append(env, "TERM=xterm", "PS1=$ ", "LC_ALL=C.UTF-8", "HISTFILE=/dev/null", "SHELL=/bin/bash")}
}

func atTerminal(t *testing.T, words []string, known map[string]string) {
	for _, w := range terminalWork {
		if known[w.name] != "" {
			continue
		}
		t.Run(w.name, func(t *testing.T) {
			testenv.Need(t, w.needs...)
			w.do(t, newCaller(t, words))
		})
	}
}

// ofItself is what has no unsandboxed counterpart.
func ofItself(t *testing.T, bawn []string) {
	for _, w := range []struct {
		name string
		do   func(*testing.T, caller)
	}{
		{"all exit codes", allExitCodes},
		{"kill -9 of bawn ends the guest", killed},
		{"kill -9 of bawn at a terminal ends the guest", killedAtTerminal},
		{"signals to bawn end the guest", signalled},
		{"signals to bawn at a terminal give it back", signalledAtTerminal},
		{"a closed terminal ends the guest", hungUp},
		{"nothing outlives the command", outlives},
		{"time limit", timeLimit},
		{"environment", environment},
		{"umask of the caller", callersUmask},
		{"descriptors of the caller", callersDescriptors},
		{"closed standard streams", closedStreams},
		{"subdirectory of a repository", subdirectory},
		{"file of the caller as output", callersFile},
		{"caches of its own", ownCaches},
		{"a repository's own configuration", repositoryConfiguration},
	} {
		t.Run(w.name, func(t *testing.T) { w.do(t, newCaller(t, bawn)) })
	}
}

// start runs bawn with flags, without a terminal.
func (d caller) start(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(d.words[0], append(d.words[1:], args...)...)
	cmd.Dir, cmd.Env = d.dir, d.env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return cmd
}

func (d caller) run(args ...string) (stdout, stderr string, code int) {
	return Wrapped(slices.Concat([]string{"env", "-i"}, d.env, d.words)...)(d.dir, nil, args...)
}

// markers counts the guests that were marked.
var markers atomic.Int32

// marked is a command that lives in four processes, all of which can be told
// by an argument that nobody else has. They are deaf to what would end them,
// as an unwilling guest would be, or not.
func marked(deaf bool) (marker string, argv []string) {
	trap := ":"
	if deaf {
		trap = `trap '' HUP TERM INT`
	}
	marker = fmt.Sprintf("1000.%d%03d", os.Getpid(), markers.Add(1)) // of three digits, that none begins as another
	script := fmt.Sprintf(`%[2]s; setsid sleep %[1]s & (sleep %[1]s & exec sleep %[1]s) & sleep %[1]s; echo went on; sleep %[1]s`, marker, trap)
	return marker, []string{"--", "sh", "-c", script}
}

// alive counts the processes with the marker as argument, zombies included
// only as long as they show one.
func alive(marker string) (n int) {
	lists, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, name := range lists {
		if argv, err := os.ReadFile(name); err == nil && strings.HasPrefix(string(argv), "sleep\x00"+marker) {
			n++
		}
	}
	return n
}

// await waits for as many processes as wanted.
func await(t *testing.T, marker string, want int) {
	t.Helper()
	testenv.Until(t, fmt.Sprint(want, " processes of the guest"), func() bool { return alive(marker) == want })
}

// allExitCodes has them all of sandboxes of Bawn's own; an engine's executor
// tells them in the same message, and starts later.
func allExitCodes(t *testing.T, d caller) {
	step := testenv.Some(1, 15)
	if slices.Contains(d.words, "--provider") {
		step = 15 // 255 among them
	}
	for code := 0; code < 256; code += step {
		if _, errs, got := d.run("--", "sh", "-c", "exit "+strconv.Itoa(code)); got != code || errs != "" {
			t.Errorf("exit code %d, want %d; standard error %q", got, code, errs)
		}
	}
	for _, sig := range []int{1, 2, 3, 6, 9, 10, 11, 13, 14, 15, 31} {
		script := fmt.Sprintf("ulimit -c 0; kill -%d $$; sleep 1", sig)
		if _, _, got := d.run("--", "sh", "-c", script); got != 128+sig {
			t.Errorf("after signal %d exit code %d, want %d", sig, got, 128+sig)
		}
	}
}

func killed(t *testing.T, d caller) {
	marker, argv := marked(true)
	cmd := d.start(t, argv...)
	await(t, marker, 4)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	await(t, marker, 0)
}

func killedAtTerminal(t *testing.T, d caller) {
	marker, argv := marked(true)
	s := d.screen(t, argv...)
	await(t, marker, 4)
	if err := s.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	await(t, marker, 0)
}

// signalled ends also a guest that does not listen, after a while.
func signalled(t *testing.T, d caller) {
	for _, tt := range []struct {
		sig  syscall.Signal
		deaf bool
		code int
	}{{syscall.SIGINT, false, 130}, {syscall.SIGTERM, false, 143}, {syscall.SIGHUP, false, 129}, {syscall.SIGTERM, true, 143}, {syscall.SIGHUP, true, 129}} {
		t.Run(fmt.Sprintf("%v deaf %v", tt.sig, tt.deaf), func(t *testing.T) {
			t.Parallel() // deaf guests are waited for
			marker, argv := marked(tt.deaf)
			cmd := d.start(t, argv...)
			await(t, marker, 4)
			if err := cmd.Process.Signal(tt.sig); err != nil {
				t.Fatal(err)
			}
			await(t, marker, 0)
			if got := waitCode(t, cmd); got != tt.code {
				t.Errorf("bawn ended with %d, want %d", got, tt.code)
			}
		})
	}
}

func waitCode(t *testing.T, cmd *exec.Cmd) int {
	t.Helper()
	code, err := exitCode(t.Context(), cmd.Wait())
	if err != nil {
		t.Fatal(err)
	}
	return code
}

func signalledAtTerminal(t *testing.T, d caller) {
	for sig, code := range map[syscall.Signal]int{syscall.SIGTERM: 143, syscall.SIGHUP: 129} {
		marker, argv := marked(false)
		argv[3] = "stty raw -echo; " + argv[3]
		s := d.screen(t, argv...)
		await(t, marker, 4)
		if err := s.cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
		await(t, marker, 0)
		s.mustEnd(code)
	}
}

func hungUp(t *testing.T, d caller) {
	marker, argv := marked(true)
	s := d.screen(t, argv...)
	await(t, marker, 4)
	s.master.Close()
	s.tty.Close()
	await(t, marker, 0)
}

func outlives(t *testing.T, d caller) {
	marker, _ := marked(false)
	script := fmt.Sprintf(`sleep %[1]s & setsid sleep %[1]s & (nohup sleep %[1]s >/dev/null 2>&1 &); echo started`, marker)
	out, errs, code := d.run("--", "sh", "-c", script)
	if out != "started\n" || code != 0 {
		t.Errorf("got %q, %q, %d", out, errs, code)
	}
	await(t, marker, 0)
}

func timeLimit(t *testing.T, d caller) {
	marker, argv := marked(true)
	start := time.Now()
	_, errs, code := d.run(append([]string{"--timeout", "1s"}, argv...)...)
	if took := time.Since(start); code != 124 || took < time.Second {
		t.Errorf("ended with %d after %s: %s", code, took, errs)
	}
	if !strings.Contains(errs, "time") {
		t.Errorf("standard error does not name the time limit: %q", errs)
	}
	await(t, marker, 0)
	marker, argv = marked(true)
	argv[3] = "stty raw -echo; " + argv[3]
	s := d.screen(t, append([]string{"--timeout", "1s"}, argv...)...)
	s.mustEnd(124)
	await(t, marker, 0)
	if out, _, code := d.run("--timeout", "1m", "--", "echo", "in time"); out != "in time\n" || code != 0 {
		t.Errorf("within the limit: %q, %d", out, code)
	}
}
