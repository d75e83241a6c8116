package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/cli"
	"github.com/bawn-dev/bawn/internal/config"
	"github.com/bawn-dev/bawn/internal/egressd"
	"github.com/bawn-dev/bawn/internal/launch"
	"github.com/bawn-dev/bawn/internal/runner"
	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/sandbox/docker"
	"github.com/bawn-dev/bawn/internal/skill/strict"
	"github.com/bawn-dev/bawn/internal/testenv"
)

func TestMain(m *testing.M) {
	if runner.ShellCall(os.Args) != nil { // in a split session of a script's
		main()
	}
	testscript.Main(m, map[string]func(){
		"bawn":  main,
		"bawnd": bawnd,
	})
}

// bawnd is what scripts need of it: the relay, and the provider that bawn has
// not.
func bawnd() {
	args := os.Args[1:]
	if len(args) > 0 && slices.Contains([]string{"secret", "serve", "pair"}, args[0]) {
		fmt.Println("bawnd is called:", strings.Join(args, " "))
		os.Exit(0)
	}
	if len(args) > 0 && slices.Contains([]string{"run", "doctor", "config", "skill", launch.Verb}, args[0]) {
		e := launch.OwnEnv(map[string]launch.Maker{docker.Name: func(s launch.Setting) sandbox.Provider {
			return docker.New(dockerOptions(s.Config.Docker()), docker.Setting{Environ: s.Environ()})
		}})
		e.CheckSkill = strict.Check
		e.CheckDocker = func(o config.DockerOptions, r bawn.Resources) error { return dockerOptions(o).Check(r) }
		e.Docker = func(launch.ContainerSetting) (func(runner.ContainerHost) (func() error, error), error) {
			return nil, errors.New("there is no engine")
		}
		os.Exit(cli.Main(args, e))
	}
	os.Exit(egressd.Main(args, os.Environ()))
}

func dockerOptions(o config.DockerOptions) docker.Options {
	return docker.Options{Image: o.Image, ExtraArgs: o.ExtraArgs, Allowed: o.AllowArgs}
}

// TestScripts are the command line's behaviour that needs nothing of the
// machine.
func TestScripts(t *testing.T) {
	testenv.ByUser(t)
	runScripts(t, "", func(name string) bool { return !strings.HasPrefix(name, "run-") && !strings.HasPrefix(name, "home-") })
}

// TestRunScripts are what starts a sandbox.
func TestRunScripts(t *testing.T) {
	testenv.Need(t, "userns", "landlock", "seccomp", "notify")
	runScripts(t, "", func(name string) bool { return strings.HasPrefix(name, "run-") })
}

// TestHomeScripts are what needs a place of the host that a session sees: the
// temporary directory, where other scripts are, is private in it.
func TestHomeScripts(t *testing.T) {
	testenv.ByUser(t)
	testenv.Need(t, "userns", "landlock", "seccomp", "notify")
	runScripts(t, homeRoot(t), func(name string) bool { return strings.HasPrefix(name, "home-") })
}

// homeRoot makes a directory in the home directory.
func homeRoot(t *testing.T) string {
	t.Helper()
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	root, err := os.MkdirTemp(home, "bawn-scripts-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(root) })
	return root
}

// runScripts runs scripts with variables in their environment ("NAME", "value", …).
func runScripts(t *testing.T, root string, chosen func(name string) bool, env ...string) {
	t.Helper()
	files, err := filepath.Glob("testdata/script/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	files = slices.DeleteFunc(files, func(f string) bool { return !chosen(filepath.Base(f)) })
	if len(files) == 0 {
		t.Fatal("no script was found")
	}
	testscript.Run(t, testscript.Params{
		Files: files, RequireExplicitExec: true, RequireUniqueNames: true, WorkdirRoot: root,
		Cmds:      map[string]func(*testscript.TestScript, bool, []string){"exits": exits},
		Condition: func(name string) (bool, error) { return condition(name, len(env) > 0) },
		Setup: func(e *testscript.Env) error {
			for i := 0; i+1 < len(env); i += 2 {
				e.Setenv(env[i], env[i+1])
			}
			return setup(e)
		},
	})
}

// setup gives a script a home of its own and a workspace, $WORK/w.
func setup(e *testscript.Env) error {
	for _, dir := range []string{"home/.config/bawn", "w"} {
		if err := os.MkdirAll(filepath.Join(e.WorkDir, dir), 0o755); err != nil {
			return err
		}
	}
	e.Setenv("HOME", filepath.Join(e.WorkDir, "home"))
	e.Setenv("LC_ALL", "C")
	e.Cd = filepath.Join(e.WorkDir, "w")
	return nil
}

// exits runs a program and wants an exit code: exits CODE PROGRAM [ARG...].
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 || neg {
		ts.Fatalf("usage: exits CODE PROGRAM [ARG...]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// condition knows [root], [docker], and [whole], which is what make nightly runs.
func condition(name string, docker bool) (bool, error) {
	switch name {
	case "root":
		return os.Geteuid() == 0, nil
	case "docker":
		return docker, nil
	case "whole":
		return !testenv.Short(), nil
	}
	return false, errors.New("unknown condition " + name)
}
