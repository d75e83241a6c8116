package web_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"
	"syscall"
	"testing"

	"github.com/bawn-dev/bawn/internal/relay/webui"
	"github.com/bawn-dev/bawn/internal/testenv"
	"github.com/bawn-dev/bawn/internal/testenv/testhome"
)

// A machine is somebody's home with the real programs: bawn serve with the page,
// and sessions that ask.
type machine struct {
	t                  *testing.T
	home, project, bin string
	address            string

	mu   sync.Mutex
	runs map[string]string // what they wrote, and how they ended
}

// askRule has everything asked that touches a file.
const askRule = "[[rule]]\nid = \"ask-touch\"\nkind = \"command\"\npattern = \"touch *\"\nverdict = \"ask\"\n"

func openMachine(t *testing.T, bin string, ca *webui.Authority) *machine {
	parent := "/var/lib" // no sandbox has a file system of its own there
	if os.Geteuid() != 0 {
		parent, _ = os.UserHomeDir() // "": the directory of temporary files
	}
	home, err := os.MkdirTemp(parent, "bawn-web-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = testenv.RemoveAll(home) })
	m := &machine{t: t, home: home, project: filepath.Join(home, "project"), bin: bin, runs: map[string]string{}}
	for _, dir := range []string{m.project, filepath.Join(m.home, "run")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	m.write("config/bawn/policy.toml", askRule)
	m.authority(ca)
	m.serve()
	return m
}

// programs builds bawn and bawnd. With a cold cache that takes minutes, which
// no scenario waits for.
func programs(t *testing.T) (bin string) {
	t.Helper()
	bin = t.TempDir()
	if err := testhome.Programs(bin, "cmd/bawn", "cmd/bawnd"); err != nil {
		t.Fatal(err)
	}
	return bin
}

func (m *machine) write(name, text string) {
	path := filepath.Join(m.home, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		m.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		m.t.Fatal(err)
	}
}

// authority gives the machine the authority that the browser trusts.
func (m *machine) authority(ca *webui.Authority) {
	text, err := os.ReadFile(filepath.Join(authorityDir, "web-ca-localhost.pem"))
	if err != nil || !bytes.Contains(text, ca.PEM()) {
		m.t.Fatalf("the authority of the tests: %v", err)
	}
	m.write("state/bawn/web-ca-localhost.pem", string(text))
}

// command returns one of bawn's, which ends with the test.
func (m *machine) command(args ...string) *exec.Cmd {
	cmd := exec.CommandContext(m.t.Context(), filepath.Join(m.bin, "bawn"), args...)
	cmd.Dir = m.project
	cmd.Env = []string{
		"HOME=" + m.home, "PATH=" + m.bin + ":/usr/bin:/bin", "LANG=C.UTF-8", "TERM=xterm",
		"XDG_RUNTIME_DIR=" + filepath.Join(m.home, "run"), "XDG_STATE_HOME=" + filepath.Join(m.home, "state"), "XDG_CONFIG_HOME=" + filepath.Join(m.home, "config"),
	}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	return cmd
}

var served = regexp.MustCompile(`the web page is served" address=(\S+)`)

// serve starts the relay and waits until it says where the page is.
func (m *machine) serve() {
	cmd := m.command("serve", "--listen", "127.0.0.1:0")
	stderr, err := cmd.StderrPipe()
	if err != nil {
		m.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() { _ = cmd.Wait() }) // it was told to end
	var said bytes.Buffer
	for lines := bufio.NewScanner(io.TeeReader(stderr, &said)); m.address == "" && lines.Scan(); {
		if found := served.FindStringSubmatch(lines.Text()); found != nil {
			m.address = found[1]
		}
	}
	go io.Copy(io.Discard, stderr)
	if m.address == "" {
		m.t.Fatalf("bawn serve serves no page: %s", &said)
	}
}

func (m *machine) origin() string { return m.address }

// run starts a session and notes how it ends.
func (m *machine) run(name string, args ...string) {
	cmd := m.command(append([]string{"run"}, args...)...)
	go func() {
		out, err := cmd.CombinedOutput()
		m.mu.Lock()
		defer m.mu.Unlock()
		m.runs[name] = fmt.Sprintf("%s%v", out, err)
	}()
}

func (m *machine) tell(verb string, w http.ResponseWriter, r *http.Request) bool {
	switch verb {
	case "pair":
		out, err := m.command("pair", "--json", "--read-only="+strconv.FormatBool(r.FormValue("readonly") != "")).Output()
		var code struct{ URL string }
		if err == nil {
			err = json.Unmarshal(out, &code)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return true
		}
		fmt.Fprint(w, code.URL)
	case "run":
		m.run(r.FormValue("name"), r.Form["arg"]...)
	case "write":
		m.write(filepath.Join("project", filepath.Base(r.FormValue("name"))), r.FormValue("text"))
	case "read":
		text, err := os.ReadFile(filepath.Join(m.project, filepath.Base(r.FormValue("name"))))
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return true
		}
		fmt.Fprintf(w, "%s", text)
	case "state":
		m.mu.Lock()
		defer m.mu.Unlock()
		files, _ := filepath.Glob(filepath.Join(m.project, "*")) // the pattern is sound
		for i := range files {
			files[i] = filepath.Base(files[i])
		}
		json.NewEncoder(w).Encode(map[string]any{"runs": m.runs, "files": files})
	default:
		return false
	}
	return true
}
