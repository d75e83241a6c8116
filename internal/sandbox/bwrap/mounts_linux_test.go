package bwrap

import (
	"bufio"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/testenv"
)

// views are what a guest sees, and the guest of bwrap alone.
type views struct{ Guest, Control, Err string }

// inMounts has a part played as root in a mount namespace of its own.
func inMounts(t *testing.T, part, dir string) (got views) {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), partVariable+"="+part, dirVariable+"="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS} // made private by syscall
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	check(t, err)
	check(t, json.Unmarshal(out, &got))
	if got.Err != "" {
		t.Fatal(got.Err)
	}
	return got
}

// show plays a part that returns what was seen.
func show(part func(dir string) (views, error)) func() int {
	return func() int {
		got, err := part(os.Getenv(dirVariable))
		if err != nil {
			got.Err = err.Error()
		}
		if json.NewEncoder(os.Stdout).Encode(got) != nil {
			return 1
		}
		return 0
	}
}

// unreachable mounts something in a closed directory, and has an ordinary user
// look.
func unreachable(dir string) (views, error) {
	const uid = 60321
	err := errors.Join(
		os.Mkdir(dir+"/ws", 0o755), os.Chown(dir+"/ws", uid, uid), os.Chmod(dir, 0o755), os.MkdirAll(dir+"/closed/place", 0o700),
		syscall.Mount("tmpfs", dir+"/closed/place", "tmpfs", 0, ""))
	if err != nil {
		return views{}, err
	}
	program, err := os.ReadFile("/proc/self/exe")
	if err == nil {
		err = os.WriteFile(dir+"/program", program, 0o755) // the user may not reach this one
	}
	if err != nil {
		return views{}, err
	}
	cmd := exec.Command(dir + "/program")
	cmd.Env = append(os.Environ(), partVariable+"=user", dirVariable+"="+dir, "HOME="+dir+"/home")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	var got views
	if err == nil {
		err = json.Unmarshal(out, &got)
	}
	return got, err
}

// flagsOf is what the ordinary user's guests see of that mount.
func flagsOf(dir string) (got views, err error) {
	look := "grep " + dir + "/closed/place /proc/self/mountinfo"
	plain, err := exec.Command(Name, "--unshare-user", "--unshare-pid", "--ro-bind", "/", "/", "--proc", "/proc", "--", "sh", "-c", look).Output()
	if err != nil {
		return got, err
	}
	got.Control = string(plain)
	g, err := begun(dir + "/ws")
	if err != nil {
		return got, err
	}
	defer g.Close()
	got.Guest = said(g, look)
	return got, nil
}

// begun starts a session in ws.
func begun(ws string) (sandbox.Guest, error) {
	plan, err := tried.Plan(here(ws, bawn.NetworkNone))
	if err != nil {
		return nil, err
	}
	return tried.Start(plan, func(sandbox.Denial) {})
}

// TestUnreachableMounts has something mounted where the session's user can't go.
// bwrap leaves its flags alone; the guest must have it read-only. The control is
// bwrap by itself.
func TestUnreachableMounts(t *testing.T) {
	need(t)
	testenv.Need(t, "root")
	got := inMounts(t, "unreachable", workspace(t))
	if !strings.Contains(got.Control, " rw,") {
		t.Errorf("control: %q; want bwrap to leave it writable", got.Control)
	}
	if !strings.Contains(got.Guest, " ro,nosuid,nodev") {
		t.Errorf("the guest has %q", got.Guest)
	}
}

// TestLaterMounts mounts something on the host, in a place whose mounts are
// shared, as all are where systemd runs, after the session has started. The
// guest must not see it. The control is bwrap by itself, whose guest does.
func TestLaterMounts(t *testing.T) {
	need(t)
	testenv.Need(t, "root")
	got := inMounts(t, "later", workspace(t))
	if got.Control != "seen\n" {
		t.Errorf("control: %q; want bwrap's guest to see the mount", got.Control)
	}
	if !strings.Contains(got.Guest, "No such file") {
		t.Errorf("the guest sees what was mounted later: %q", got.Guest)
	}
}

// later is what guests see of a mount that is made while they run.
func later(dir string) (got views, err error) {
	err = errors.Join(
		syscall.Mount("tmpfs", dir, "tmpfs", 0, ""), os.Mkdir(dir+"/ws", 0o755), os.Mkdir(dir+"/later", 0o755),
		syscall.Mount("none", dir, "", syscall.MS_SHARED, ""))
	if err != nil {
		return got, err
	}
	g, err := begun(dir + "/ws")
	if err != nil {
		return got, err
	}
	defer g.Close()
	plain := exec.Command(Name, "--ro-bind", "/", "/", "--dev", "/dev", "--", "sh", "-c", "echo here; read line; cat "+dir+"/later/file")
	in, err1 := plain.StdinPipe()
	out, err2 := plain.StdoutPipe()
	if err := errors.Join(err1, err2, plain.Start()); err != nil {
		return got, err
	}
	lines := bufio.NewReader(out)
	_, err = lines.ReadString('\n')
	err = errors.Join(err, syscall.Mount("tmpfs", dir+"/later", "tmpfs", 0, ""), os.WriteFile(dir+"/later/file", []byte("seen\n"), 0o644), in.Close())
	got.Control, _ = lines.ReadString('\n')
	got.Guest = said(g, "cat "+dir+"/later/file 2>&1")
	return got, errors.Join(err, plain.Wait())
}

// said is what a script prints, or why it could not.
func said(g sandbox.Guest, text string) string {
	r, w, err := os.Pipe()
	if err != nil {
		return err.Error()
	}
	defer r.Close()
	_, err = g.Exec(sandbox.Command{Argv: []string{"sh", "-c", text}, Stdio: [3]*os.File{nil, w, w}})
	w.Close()
	if err != nil {
		return err.Error()
	}
	line, _ := bufio.NewReader(r).ReadString('\n')
	return line
}
