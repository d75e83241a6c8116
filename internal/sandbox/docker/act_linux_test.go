package docker

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/bawn-dev/bawn/internal/sandbox"
)

// actVariable has this test binary make one session in a process of its own,
// as another user or to be killed.
const actVariable = "BAWN_TEST_DOCKER_ACT"

// An act is one session.
type act struct {
	Options Options
	Setting Setting
	Request sandbox.Request
	Text    string // for the guest's shell
	Hold    bool   // then wait for the end of standard input, and don't close
}

// play is the process of an act.
func play(text string) int {
	var a act
	err := json.Unmarshal([]byte(text), &a)
	if err == nil {
		err = a.play()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func (a *act) play() error {
	p := New(a.Options, a.Setting)
	plan, err := p.Plan(a.Request)
	if err != nil {
		return err
	}
	g, err := p.Start(plan, func(d sandbox.Denial) { fmt.Println("denied:", d.Rule, d.Resource) })
	if err != nil {
		return err
	}
	proc, err := g.Exec(sandbox.Command{Argv: []string{"sh", "-c", a.Text}, Stdio: [3]*os.File{nil, os.Stdout, os.Stdout}})
	if err != nil {
		return err
	}
	fmt.Println("running")
	for c := range proc.Changes() {
		fmt.Println("status", c.Status.ExitStatus())
	}
	if n := g.Network(); n != nil {
		fmt.Println("sockets", len(n.Files()))
	}
	if a.Hold {
		fmt.Println("holding")
		_, err := io.Copy(io.Discard, os.Stdin)
		return err
	}
	return g.Close()
}

// command prepares the process of an act as a user.
func (a act) command(t testing.TB, uid int) *exec.Cmd {
	t.Helper()
	dir, err := os.MkdirTemp("/var/tmp", "bawn-act-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	binary, bawn := filepath.Join(dir, "test"), filepath.Join(dir, "bawn")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	place, ws := filepath.Join(dir, "run"), filepath.Join(dir, "ws")
	for _, err := range []error{
		link(self, binary), link(program, bawn), os.Mkdir(place, 0o700), os.Mkdir(ws, 0o755), os.Chown(place, uid, uid), os.Chown(ws, uid, uid), os.Chmod(dir, 0o755),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	a.Setting.Program = bawn
	if a.Setting.Runtime == "" {
		a.Setting.Runtime = place
	}
	if a.Request.Session.Isolation.Workspace == "" {
		iso := request(t).Session.Isolation
		iso.Workspace, iso.Network, iso.Mounts[0].Path = ws, a.Request.Session.Isolation.Network, ws
		a.Request.Session.Isolation, a.Request.Dir, a.Request.Session.ID = iso, ws, "act-"+strings.ToLower(filepath.Base(dir))
	}
	text, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary)
	cmd.Dir, cmd.Env = "/", []string{actVariable + "=" + string(text), "HOME=/home/ada"}
	if uid != os.Geteuid() {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}}
	}
	return cmd
}

// link makes a file appear elsewhere, where anybody may read it.
func link(from, to string) error {
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, text, 0o755)
}
