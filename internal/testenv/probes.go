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
	"root":       isRoot,
	"user":       canBeUser,
	"userns":     userNamespace,
	"landlock":   landlock,
	"seccomp":    seccompFilter,
	"notify":     seccompNotify,
	"cgroup":     cgroupLimits,
	"bash":       runs("bash", "--norc", "--noprofile", "-c", ":"),
	"dash":       runs("dash", "-c", ":"),
	"git":        runs("git", "--version"),
	"go":         runs("go", "version"),
	"cc":         runs(compiler(), "--version"),
	"node":       runs("node", "-e", "0"),
	"python3":    runs("python3", "-c", "pass"),
	"make":       runs("make", "--version"),
	"tmux":       runs("tmux", "-V"),
	"vim":        runs("vim", "--version"),
	"less":       runs("less", "--version"),
	"bwrap":      runs("bwrap", "--unshare-all", "--ro-bind", "/", "/", "true"),
	"docker":     runs("docker", "info"),
	"qemu":       runs(qemu(), "--version"),
	"strace":     runs("strace", "-o", "/dev/null", "true"),
	"npm-agents": npmAgents,
})

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
