package testenv

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// RunscVariable names the environment variable that holds the path of
// gVisor's runsc; without it runsc is looked for in PATH.
const RunscVariable = "BAWN_TEST_RUNSC"

// Runsc returns the whole path of gVisor's runtime.
func Runsc() (string, error) {
	name := os.Getenv(RunscVariable)
	if name == "" {
		name = "runsc"
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("runsc: %w; build it (make runsc) and name it in %s", err, RunscVariable)
	}
	return filepath.Abs(path)
}

// runsc runs a program in gVisor, with no network and, as an ordinary user,
// without privileges.
func runsc() error {
	path, err := Runsc()
	if err != nil {
		return err
	}
	args := []string{"--network=none", "--ignore-cgroups"}
	if os.Geteuid() != 0 {
		args = append(args, "--rootless")
	}
	return runs(path, append(args, "do", "true")...)()
}

// sbin finds a program of the administrator's, which may stand outside of an
// ordinary PATH.
func sbin(name string) (string, error) {
	for _, try := range []string{name, "/usr/sbin/" + name, "/sbin/" + name, "/usr/local/sbin/" + name} {
		if path, err := exec.LookPath(try); err == nil {
			return filepath.Abs(path)
		}
	}
	return "", fmt.Errorf("%s: not found", name)
}

// Dockerd returns the whole path of Docker's engine.
func Dockerd() (string, error) { return sbin("dockerd") }

// Podman returns the whole path of Podman.
func Podman() (string, error) { return sbin("podman") }

// dockerEngine wants all that an engine of the test's own is made of. That it
// starts is not tried here, as that takes seconds: package engine fails the
// test where it does not.
func dockerEngine() error {
	errs := []error{isRoot()}
	for _, program := range [][]string{{"dockerd", "--version"}, {"containerd", "--version"}, {"runc", "--version"}, {"iptables", "--version"}, {"busybox", "true"}} {
		path, err := sbin(program[0])
		if err == nil {
			err = runs(path, program[1:]...)()
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func podman() error {
	path, err := Podman()
	if err != nil {
		return err
	}
	return runs(path, "--version")()
}
