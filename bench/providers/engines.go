package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/bawn-dev/bawn/internal/sandbox/bwrap"
	"github.com/bawn-dev/bawn/internal/sandbox/gvisor"
	"github.com/bawn-dev/bawn/internal/sandbox/native"
	"github.com/bawn-dev/bawn/internal/testenv"
)

func (f *field) native() ([]way, error) { return f.bawnWays(native.New("")) }

// bwrap has no command for a sandbox that runs: its "next" is a new one.
func (f *field) bwrap() ([]way, error) {
	program, err := exec.LookPath("bwrap")
	if err != nil {
		return nil, err
	}
	list, err := f.bawnWays(bwrap.New("", ""))
	words := strings.Fields(program + " --unshare-all --ro-bind / / --proc /proc --dev /dev --tmpfs /tmp --tmpfs /run --bind W W --chdir W --new-session --die-with-parent --cap-drop ALL")
	for i := range words {
		if words[i] == "W" {
			words[i] = f.who.Workspace
		}
	}
	return append(list, f.ways("bwrap", "bwrap", words, words)...), err
}

// gvisor is measured as root with this machine's runsc: "do" makes a sandbox,
// and "exec" runs a command in one.
func (f *field) gvisor() ([]way, error) {
	runsc, err := testenv.Runsc()
	if err == nil && os.Geteuid() != 0 {
		err = errors.New("runsc wants root here")
	}
	if err != nil {
		return nil, err
	}
	if err := f.configure(fmt.Sprintf("[isolation]\nrunsc = %q\n", runsc)); err != nil {
		return nil, err
	}
	list, err := f.bawnWays(gvisor.New(gvisor.Options{Runsc: runsc}))
	if err != nil {
		return nil, err
	}
	words := []string{runsc, "--network=none", "--ignore-cgroups"}
	name, err := f.container(words)
	if err != nil {
		return nil, err
	}
	do := append(words[:len(words):len(words)], "--overlay2=none", "do", "--cwd", f.who.Workspace, "--force-overlay=false")
	return append(list, f.ways("gvisor", "runsc", do, append(words[:len(words):len(words)], "exec", name))...), nil
}

// container starts one with runsc that does nothing.
func (f *field) container(runsc []string) (string, error) {
	bundle, err := os.MkdirTemp(f.who.Home, "bundle-")
	if err != nil {
		return "", err
	}
	name := fmt.Sprintf("bench-%d", os.Getpid())
	text, err := json.Marshal(map[string]any{
		"ociVersion": "1.0.0", "root": map[string]any{"path": "/", "readonly": true},
		"process": map[string]any{"args": []string{"/bin/sleep", "7200"}, "cwd": "/", "env": []string{"PATH=/usr/bin:/bin"}},
		"mounts":  []any{map[string]any{"destination": "/proc", "type": "proc"}, map[string]any{"destination": "/tmp", "type": "tmpfs"}},
		"linux":   map[string]any{"namespaces": []any{map[string]any{"type": "pid"}, map[string]any{"type": "network"}, map[string]any{"type": "mount"}}},
	})
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(bundle, "config.json"), text, 0o600); err != nil {
		return "", err
	}
	if _, err := f.run(append(runsc[:len(runsc):len(runsc)], "run", "--detach", "--bundle", bundle, name)); err != nil {
		return "", err
	}
	f.closers = append(f.closers, func() error {
		_, err := f.run(append(runsc[:len(runsc):len(runsc)], "delete", "--force", name))
		return err
	})
	return name, nil
}
