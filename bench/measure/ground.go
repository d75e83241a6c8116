package measure

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// ordinaryUID is nobody's: a user and group without an entry in passwd.
const ordinaryUID = 64923

// A Ground is a directory of our own in which programs are built and
// workspaces lie. It is not below /tmp, which a guest has of its own.
type Ground struct {
	Dir string
}

// NewGround makes the directory, below /var/lib for root and below the home
// directory for others. Close removes it.
func NewGround() (*Ground, error) {
	base := "/var/lib"
	if os.Geteuid() != 0 {
		home, err := os.UserHomeDir()
		if err != nil {
			return nil, err
		}
		base = home
	}
	dir, err := os.MkdirTemp(base, "bawn-bench-")
	if err != nil {
		return nil, err
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return nil, err
	}
	return &Ground{dir}, errors.Join(os.Chmod(dir, 0o755), os.Mkdir(filepath.Join(dir, "bin"), 0o755))
}

// Close removes everything.
func (g *Ground) Close() error {
	// Go's module cache and a guest's caches hold directories without the write bit.
	_ = filepath.WalkDir(g.Dir, func(path string, e os.DirEntry, err error) error {
		if err == nil && e.IsDir() {
			_ = os.Chmod(path, 0o700)
		}
		return nil
	})
	return os.RemoveAll(g.Dir)
}

// Root returns the directory of this module.
func Root() (string, error) {
	out, err := exec.Command("go", "env", "GOMOD").Output()
	mod := strings.TrimSpace(string(out))
	if err != nil || filepath.Base(mod) != "go.mod" {
		return "", fmt.Errorf("find this module: go env GOMOD says %q (%v); start the benchmark in the source tree", mod, err)
	}
	return filepath.Dir(mod), nil
}

// Build builds a package of this module, named relative to its root, as the
// Makefile does, and returns the program's path.
func (g *Ground) Build(pkg string) (string, error) {
	root, err := Root()
	if err != nil {
		return "", err
	}
	to := filepath.Join(g.Dir, "bin", filepath.Base(pkg))
	cmd := exec.Command("go", "build", "-trimpath", "-o", to, "./"+pkg)
	cmd.Dir, cmd.Env = root, append(cmd.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", pkg, err, out)
	}
	return to, nil
}

// Self copies the running program to where every user can start it.
func (g *Ground) Self() (string, error) {
	exe, err := os.Executable()
	if err != nil {
		return "", err
	}
	from, err := os.Open(exe)
	if err != nil {
		return "", err
	}
	defer from.Close()
	path := filepath.Join(g.Dir, "bin", "self")
	to, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o755)
	if err != nil {
		return "", err
	}
	_, err = io.Copy(to, from)
	return path, errors.Join(err, to.Close())
}

// A Who is a user that runs things: its own home and workspace, and nothing
// of the caller's environment.
type Who struct {
	Name, Home, Workspace string
	UID                   int
}

// Whos makes the users that names lists, separated by commas: "root", which
// only root can be, and "user", an ordinary one. Called by an ordinary user,
// "user" is that user and "root" is left out.
func (g *Ground) Whos(names string) ([]Who, error) {
	var whos []Who
	for name := range strings.SplitSeq(names, ",") {
		me := os.Geteuid()
		switch {
		case name != "root" && name != "user":
			return nil, fmt.Errorf("-as %q: no such user here; want root, user or both", name)
		case name == "root" && me != 0:
			continue
		case name == "user" && me == 0:
			me = ordinaryUID
		}
		w := Who{name, filepath.Join(g.Dir, "home-"+name), filepath.Join(g.Dir, "workspace-"+name), me}
		whos = append(whos, w)
		if err := errors.Join(w.Mkdir(w.Home), w.Mkdir(w.Workspace)); err != nil {
			return nil, err
		}
	}
	if len(whos) == 0 {
		return nil, errors.New("-as root: only root can be root; use -as user")
	}
	return whos, nil
}

// Mkdir makes a directory that is w's.
func (w Who) Mkdir(dir string) error {
	if err := os.Mkdir(dir, 0o755); err != nil || w.UID == os.Geteuid() {
		return err
	}
	return os.Chown(dir, w.UID, w.UID)
}

// In returns w with another workspace, beside its first, which it makes.
func (w Who) In(name string) (Who, error) {
	w.Workspace += "-" + name
	return w, w.Mkdir(w.Workspace)
}

// Environ returns w's environment. PATH holds the directories of those tools
// that the caller has elsewhere.
func (w Who) Environ() []string {
	path := []string{"/usr/local/bin", "/usr/bin", "/bin"}
	for _, tool := range []string{"go", "node", "git", "make"} {
		if at, err := exec.LookPath(tool); err == nil && !slices.Contains(path, filepath.Dir(at)) {
			path = append(path, filepath.Dir(at))
		}
	}
	return []string{
		"HOME=" + w.Home, "USER=" + w.Name, "LANG=C.UTF-8", "PATH=" + strings.Join(path, ":"),
		"GOPROXY=off", "GOTOOLCHAIN=local", "GOFLAGS=-buildvcs=false", "GOPATH=" + w.Home + "/go",
	}
}

// Command prepares a program that w starts in its workspace.
func (w Who) Command(argv ...string) *exec.Cmd {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir, cmd.Env = w.Workspace, w.Environ()
	if w.UID != os.Geteuid() {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(w.UID), Gid: uint32(w.UID)}}
	}
	return cmd
}
