package testenv

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"
)

// probeTimeout ends a program that was started to see whether it works.
const probeTimeout = 20 * time.Second

// nobody is the user and group that stands for an ordinary user.
const nobody = 65534

var known = once(map[string]probe{
	"root":           isRoot,
	"user":           canBeUser,
	"userns":         userNamespace,
	"landlock":       landlock,
	"scope":          landlockScope,
	"seccomp":        seccompFilter,
	"notify":         seccompNotify,
	"cgroup":         cgroupLimits,
	"tun":            character("/dev/net/tun"),
	"bash":           runs("bash", "--norc", "--noprofile", "-c", ":"),
	"dash":           runs("dash", "-c", ":"),
	"zsh":            runs("zsh", "--version"),
	"fish":           runs("fish", "--version"),
	"git":            runs("git", "--version"),
	"go":             runs("go", "version"),
	"cc":             runs(compiler(), "--version"),
	"node":           runs("node", "-e", "0"),
	"python3":        runs("python3", "-c", "pass"),
	"perl":           runs("perl", "-e", "1"),
	"make":           runs("make", "--version"),
	"curl":           runs("curl", "--version"),
	"cargo":          runs("cargo", "--version"),
	"maven":          runs("mvn", "--version"),
	"pnpm":           runs(Manager("pnpm"), "--version"),
	"yarn":           runs(Manager("yarn"), "--version"),
	"java":           runs("java", "-version"),
	"tmux":           runs("tmux", "-V"),
	"vim":            runs("vim", "--version"),
	"less":           runs("less", "--version"),
	"bwrap":          bubblewrap,
	"docker":         dockerEngine,
	"podman":         podman,
	"runsc":          runsc,
	"openssl":        runs("openssl", "version"),
	"dpkg":           runs("dpkg-deb", "--version"),
	"lintian":        runs("lintian", "--version"),
	"shellcheck":     runs("shellcheck", "--version"),
	"qemu":           runs(qemu(), "--version"),
	"qemu-user":      runs("qemu-aarch64-static", "--version"),
	"rpm":            runs("rpm", "--version"),
	"dig":            runs("dig", "-v"),
	"getent":         runs("getent", "passwd", "root"),
	"ssh":            runs("ssh", "-V"),
	"sshd":           sshd,
	"strace":         runs("strace", "-o", "/dev/null", "true"),
	"keyring":        runs("dbus-run-session", "--", "gnome-keyring-daemon", "--version"),
	"npm":            runs("npm", "--version"),
	"npm-agents":     npmAgents,
	"chromium":       chromium,
	"pip":            runs("/usr/bin/python3", "-m", "pip", "--version"),
	"postgres":       postgres,
	"wget":           runs("wget", "--version"),
	"apt":            runs("apt-get", "--version"),
	"dnsmasq":        runs("/usr/sbin/dnsmasq", "--version"),
	"iproute2":       runs("/bin/ip", "-V"),
	"docker-clients": runs("/usr/bin/python3", "-c", "import compose, docker"),
})

// Manager is the program of a manager of packages that test/agent/install has put beside
// the agents, or its name where it has not.
func Manager(name string) string {
	p := filepath.Join(os.Getenv(AgentsVariable), name, "node_modules/.bin", name)
	if _, err := os.Stat(p); err != nil {
		return name
	}
	return p
}

// character looks for a character device.
func character(name string) probe {
	return func() error {
		info, err := os.Stat(name)
		if err == nil && info.Mode()&os.ModeCharDevice == 0 {
			err = fmt.Errorf("%s is no character device", name)
		}
		return err
	}
}

// bubblewrap binds what a program needs, and not "/": other tests mount and unmount below it.
var bubblewrap = runs("bwrap", "--unshare-all", "--ro-bind", "/usr", "/usr", "--ro-bind-try", "/lib", "/lib", "--ro-bind-try", "/lib64", "/lib64", "/usr/bin/true")

// runs returns a probe that starts a program and wants it to succeed.
func runs(name string, args ...string) probe {
	return func() error { return start(exec.CommandContext, name, args...) }
}

// start runs a program in the root directory, which every user can enter.
func start(command func(context.Context, string, ...string) *exec.Cmd, name string, args ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), probeTimeout)
	defer cancel()
	cmd := command(ctx, name, args...)
	cmd.Dir = "/"
	cmd.WaitDelay = time.Second
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %.200s", name, err, out)
	}
	return nil
}

// compiler is the C compiler that go build takes on this kind of system
// (go doc cmd/cgo).
func compiler() string {
	if cc := os.Getenv("CC"); cc != "" {
		return cc
	}
	return map[bool]string{true: "clang", false: "gcc"}[runtime.GOOS == "darwin"]
}

// sshd wants OpenSSH's server, client and agent. A server that is started by
// its whole path only (sshd(8)) may stand outside of an ordinary user's PATH.
func sshd() error {
	if _, err := SSHD(); err != nil {
		return err
	}
	if err := runs("ssh", "-V")(); err != nil {
		return err
	}
	_, err := exec.LookPath("ssh-agent")
	return err
}

// SSHD returns the whole path of OpenSSH's server.
func SSHD() (string, error) {
	for _, name := range []string{"sshd", "/usr/sbin/sshd", "/usr/local/sbin/sshd"} {
		if path, err := exec.LookPath(name); err == nil {
			return filepath.Abs(path)
		}
	}
	return "", errors.New("sshd: not found; install openssh-server")
}

// postgres wants the server and the client.
func postgres() error {
	if _, err := PostgresDir(); err != nil {
		return err
	}
	return runs("psql", "--version")()
}

// PostgresDir returns where the newest version of PostgreSQL's own programs is,
// which Debian keeps out of PATH.
func PostgresDir() (string, error) {
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err != nil || len(found) == 0 {
		return "", errors.New("initdb: not found; install postgresql")
	}
	return filepath.Dir(found[len(found)-1]), nil
}

func qemu() string {
	arch := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]
	return "qemu-system-" + arch
}

// isRoot wants a user who may give files away, which user 0 of a namespace
// with one mapped user may not.
func isRoot() error {
	if os.Geteuid() != 0 {
		return fmt.Errorf("effective user is %d", os.Geteuid())
	}
	f, err := os.CreateTemp("", fmt.Sprintf("bawn-testenv-%d-", os.Getpid()))
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	return f.Chown(nobody, nobody)
}

// chromium wants the browser and what drives it.
func chromium() error {
	if err := runs("chromium", "--version")(); err != nil {
		return err
	}
	_, err := os.Stat(filepath.Join(os.Getenv(AgentsVariable), "playwright", "node_modules", "playwright-core"))
	return err
}

// npmAgents wants node and at least one program of an installed agent.
func npmAgents() error {
	if err := runs("node", "-e", "0")(); err != nil {
		return err
	}
	dir := os.Getenv(AgentsVariable)
	if dir == "" {
		return errors.New(AgentsVariable + " names no directory of installed agents")
	}
	found, err := filepath.Glob(filepath.Join(dir, "*", "node_modules", ".bin", "*"))
	if err == nil && len(found) == 0 {
		err = fmt.Errorf("no agent below %q", dir)
	}
	return err
}
