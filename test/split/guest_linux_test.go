package split_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// guest does one thing inside, and says what came of it in a line that begins
// with "yes" or "no".
func guest(words []string) int {
	do, ok := map[string]func([]string) (string, error){
		"get": get, "dial": dial, "read": read, "see": see, "signal": signal, "env": environ, "proc": processes, "socket": socket,
		"fds": descriptors, "memory": memory, "put": put, "task": task, "proxy": proxy, "die": die,
	}[words[0]]
	if words[0] == "from" { // what no policy has seen
		return from(words[1])
	}
	if !ok {
		fmt.Println("no: the guest does not know", words)
		return 2
	}
	said, err := do(words[1:])
	if err != nil {
		fmt.Println("no:", err)
		return 1
	}
	fmt.Println("yes:", said)
	return 0
}

// from does what a file says: only the sandbox, and not the policy, is in its
// way then.
func from(file string) int {
	text, err := os.ReadFile(file)
	var words []string
	if err == nil {
		err = json.Unmarshal(text, &words)
	}
	if err != nil {
		fmt.Println("no guest:", err)
		return 3
	}
	return guest(words)
}

// short is how long a guest waits for an answer.
const short = 20 * time.Second

// die ends by a signal.
func die([]string) (string, error) {
	err := syscall.Kill(os.Getpid(), syscall.SIGTERM)
	time.Sleep(time.Minute)
	return "alive", err
}

// proxy asks the relay's proxy for a connection.
func proxy(words []string) (string, error) {
	c, err := net.DialTimeout("tcp", "127.0.0.1:61128", short)
	if err != nil {
		return "", err
	}
	defer c.Close()
	fmt.Fprintf(c, "CONNECT %s HTTP/1.1\r\nHost: %[1]s\r\n\r\n", words[0])
	if err := c.SetReadDeadline(time.Now().Add(short)); err != nil {
		return "", err
	}
	said := make([]byte, 64)
	n, err := c.Read(said)
	return string(said[:n]), err
}

func get(words []string) (string, error) {
	c := http.Client{Timeout: short}
	r, err := c.Get(words[0])
	if err != nil {
		return "", err
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if r.StatusCode != http.StatusOK {
		return "", errors.New(string(text))
	}
	return string(text), err
}

func dial(words []string) (string, error) {
	c, err := net.DialTimeout(words[0], words[1], short)
	if err != nil {
		return "", err
	}
	defer c.Close()
	if err := c.SetReadDeadline(time.Now().Add(short)); err != nil {
		return "", err
	}
	// The relay takes a connection before it decides about it.
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		return "", err
	}
	return "connected", nil
}

func read(words []string) (string, error) {
	text, err := os.ReadFile(words[0])
	return fmt.Sprintf("%.200q", text), err
}

// see looks for names below a directory.
func see(words []string) (string, error) {
	list, err := os.ReadDir(words[0])
	return fmt.Sprint(list), err
}

func put(words []string) (string, error) {
	return "written", os.WriteFile(words[0], []byte(words[1]), 0o600)
}

// signal tries every process that it sees.
func signal([]string) (string, error) {
	var reached []string
	for pid := 1; pid < 1000; pid++ {
		if pid == os.Getpid() || pid == os.Getppid() {
			continue
		}
		if syscall.Kill(pid, 0) == nil {
			name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
			reached = append(reached, strconv.Itoa(pid)+" "+strings.ReplaceAll(string(name), "\x00", " "))
		}
	}
	return strings.Join(reached, "; "), nil
}

func environ([]string) (string, error) { return strings.Join(os.Environ(), "\n"), nil }

// processes are the command lines of those that can be seen.
func processes([]string) (string, error) {
	all, err := filepath.Glob("/proc/[0-9]*")
	var lines []string
	for _, p := range all {
		line, _ := os.ReadFile(p + "/cmdline")
		env, _ := os.ReadFile(p + "/environ")
		lines = append(lines, filepath.Base(p)+" "+strings.ReplaceAll(string(line)+" "+string(env), "\x00", " "))
	}
	return strings.Join(lines, "\n"), err
}

func socket(words []string) (string, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return "", err
	}
	return "connected", unix.Connect(fd, &unix.SockaddrUnix{Name: words[0]})
}

// descriptors are those that were inherited.
func descriptors([]string) (string, error) {
	var open []string
	for fd := range 256 {
		if to, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(fd)); err == nil && fd > 2 && !strings.Contains(to, "anon_inode") && !strings.Contains(to, "/proc/") {
			open = append(open, fmt.Sprint(fd, " ", to))
		}
	}
	return strings.Join(open, "; "), nil
}

// memory looks for a text in all files below some directories, in two pieces so
// that it does not find itself.
func memory(words []string) (string, error) {
	want := words[0] + words[1]
	var found []string
	for _, dir := range words[2:] {
		err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return nil //nolint:nilerr // what can't be read tells nothing
			}
			if text, err := os.ReadFile(p); err == nil && strings.Contains(string(text), want) {
				found = append(found, p)
			}
			return nil
		})
		if err != nil {
			return "", err
		}
	}
	return strings.Join(found, " "), nil
}

// A job is one command of an agent's, and what it saw of it.
type job struct {
	Name     string
	Argv     []string
	Input    string
	Env      []string
	Dir      string
	Terminal bool
	Shells   []string // lines for a shell that reads its input, one after the other
	Out, Err string
	Code     int
}

// task runs the jobs of a file as an agent runs them and writes what came of
// them into another.
func task(words []string) (string, error) {
	var jobs []job
	text, err := os.ReadFile(words[0])
	if err == nil {
		err = json.Unmarshal(text, &jobs)
	}
	if err != nil {
		return "", err
	}
	for i := range jobs {
		jobs[i].run()
	}
	if text, err = json.Marshal(jobs); err != nil {
		return "", err
	}
	return fmt.Sprint(len(jobs), " jobs"), os.WriteFile(words[1], text, 0o600)
}

func (j *job) run() {
	cmd := exec.Command(j.Argv[0], j.Argv[1:]...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = j.Dir, append(os.Environ(), j.Env...), short
	if j.Terminal {
		j.inTerminal(cmd)
		return
	}
	var out, errs strings.Builder
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(j.Input), &out, &errs
	err := cmd.Run()
	j.Out, j.Err, j.Code = out.String(), errs.String(), cmd.ProcessState.ExitCode()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		j.Err += err.Error()
	}
}

func (j *job) inTerminal(cmd *exec.Cmd) {
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 33, Cols: 77})
	if err != nil {
		j.Err = err.Error()
		return
	}
	defer tty.Close()
	var text []byte
	for buf := make([]byte, 512); err == nil; { // ends with EIO
		var n int
		n, err = tty.Read(buf)
		if text = append(text, buf[:n]...); bytes.HasSuffix(text, []byte("? ")) {
			_, _ = io.WriteString(tty, j.Input) // what was typed shows
		}
	}
	_ = cmd.Wait() // the code says it
	j.Out, j.Code = string(text), cmd.ProcessState.ExitCode()
}
