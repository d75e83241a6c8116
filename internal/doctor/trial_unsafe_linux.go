package doctor

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/linux/rawproc"
	"github.com/bawn-dev/bawn/internal/linux/seccomp"
	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/sandbox/native"
)

const sizeofMountAttr = unsafe.Sizeof(unix.MountAttr{})

func mountAttr(p *rawproc.Program, set uint64) rawproc.Ptr {
	return rawproc.Put(p, unix.MountAttr{Attr_set: set, Propagation: unix.MS_PRIVATE})
}

// notifications loads the guest's filter with a listener, as a session does.
func notifications() Check {
	filter, err := seccomp.Compile(seccomp.Guest(true))
	if err == nil {
		p := &rawproc.Program{}
		prog := rawproc.Put(p, unix.SockFprog{Len: uint16(len(filter)), Filter: rawproc.Array(p, filter)})
		p.Call("no new privileges", unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
		p.Call("load the seccomp filter with a listener", unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER,
			unix.SECCOMP_FILTER_FLAG_NEW_LISTENER|unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, prog)
		err = carryOut(0, p) // the only one of them that needs no namespace
	}
	remedy := "Linux 5.19 or newer with CONFIG_SECCOMP_FILTER is needed"
	if errors.Is(err, unix.EBUSY) {
		remedy = "another supervisor holds this process already; run bawn outside of it"
	}
	return check(err, "filter loaded, calls can be supervised", remedy)
}

// probe is what the guest of the trial does; each line must fail or succeed
// as trial expects, seen from outside.
const probe = `echo inside > inside
echo no > "$OUT/outside"
mkdir .vscode; echo no > .envrc
cat "$HOME/.netrc" && echo LEAKED
echo done`

// whole starts a real session in a scratch directory and looks at the effects
// from outside.
func whole() Check {
	const remedy = "see the checks above"
	dir, err := os.MkdirTemp("", "bawn-doctor-")
	if err != nil {
		return check(err, "", "make the temporary directory writable")
	}
	defer os.RemoveAll(dir)
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return check(err, "", remedy)
	}
	return check(trial(dir), "writes, protected names, hidden credentials and the network behave", remedy)
}

func trial(dir string) error {
	ws, out := filepath.Join(dir, "workspace"), filepath.Join(dir, "out")
	for _, d := range []string{ws, out} {
		if err := os.Mkdir(d, 0o700); err != nil {
			return err
		}
	}
	if err := os.WriteFile(filepath.Join(out, ".netrc"), []byte("secret\n"), 0o600); err != nil {
		return err
	}
	text, err := session(ws, out)
	if err != nil {
		return err
	}
	return judge(ws, out, text)
}

// session runs the probe and returns what it printed.
func session(ws, out string) (string, error) {
	p := native.New("")
	plan, err := p.Plan(sandbox.Request{
		Session: bawn.Session{ID: "doctor", Isolation: bawn.Isolation{
			Workspace: ws, Protect: true, Env: []string{"PATH", "HOME", "OUT"},
			Mounts:    []bawn.Mount{{Path: ws, Access: bawn.ReadWrite, Why: "workspace"}, {Path: out, Access: bawn.ReadOnly, Why: "doctor"}},
			Resources: bawn.Resources{TmpMB: 16},
		}},
		Argv: []string{"/bin/sh"}, Dir: ws, Environ: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + out, "OUT=" + out}, //nolint:forbidigo // the guest needs a PATH
	})
	if err != nil {
		return "", err
	}
	g, err := p.Start(plan, func(sandbox.Denial) {})
	if err != nil {
		return "", err
	}
	defer g.Close()
	r, w, err := os.Pipe()
	if err != nil {
		return "", err
	}
	defer r.Close()
	null, err := os.Open(os.DevNull)
	if err != nil {
		w.Close()
		return "", err
	}
	defer null.Close()
	_, err = g.Exec(sandbox.Command{Argv: []string{"/bin/sh", "-c", probe}, Stdio: [3]*os.File{null, w, w}})
	w.Close()
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(io.LimitReader(r, 64<<10))
	return string(text), err
}

// judge looks from outside.
func judge(ws, out, text string) error {
	present := func(p ...string) bool { _, err := os.Lstat(filepath.Join(p...)); return err == nil }
	switch {
	case !strings.Contains(text, "done"):
		return fmt.Errorf("the guest did not run to its end: %q", text)
	case !present(ws, "inside"):
		return fmt.Errorf("the guest could not write to its workspace: %q", text)
	case present(out, "outside"):
		return fmt.Errorf("the guest wrote outside its workspace")
	case present(ws, ".vscode"), present(ws, ".envrc"):
		return fmt.Errorf("the guest created a protected name")
	case strings.Contains(text, "LEAKED"), strings.Contains(text, "secret"):
		return fmt.Errorf("the guest read a credential")
	}
	return nil
}
