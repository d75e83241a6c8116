package engine

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
)

// writeConfig writes dockerd's configuration (dockerd(8), "daemon
// configuration file"), so that the machine's own is not read.
func (e *Engine) writeConfig() (string, error) {
	at := func(name string) string { return filepath.Join(e.Dir, name) }
	config := map[string]any{
		"hosts": []string{e.Host()}, "data-root": at("data"), "exec-root": at("exec"), "pidfile": at("pid"),
		"cgroup-parent": "/" + e.name, "shutdown-timeout": 3, "log-level": "warn",
	}
	text, err := json.Marshal(config)
	if err != nil {
		return "", err
	}
	path := at("daemon.json")
	return path, os.WriteFile(path, text, 0o600)
}

// unified is where the unified hierarchy of control groups is: alone, or
// beside the hierarchies of cgroups(7) version 1.
var unified = []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"}

// makeGroup makes the control group that the engine's processes stay in, and
// by which they are found when their parents are gone.
func (e *Engine) makeGroup() (*os.File, error) {
	var errs []error
	for _, top := range unified {
		if _, err := os.Stat(filepath.Join(top, "cgroup.controllers")); err != nil {
			errs = append(errs, err)
			continue
		}
		own := filepath.Join(top, e.name)
		// Below our own, because groups with controllers hold no processes.
		daemon := filepath.Join(own, "daemon")
		if err := errors.Join(os.Mkdir(own, 0o755), os.Mkdir(daemon, 0o755)); err != nil {
			return nil, err
		}
		return os.Open(daemon)
	}
	return nil, errors.Join(errs...)
}
