// Package settings reads the files of a machine, its user and a project: the
// configuration, the rules of the policy, and answers of "always" and "never". It
// knows where they and Bawn's own directories are.
package settings

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/bawn-dev/bawn/internal/config"
	"github.com/bawn-dev/bawn/internal/verb"
)

// InputsHere returns the inputs of the configuration of a session that is
// started in the working directory.
func InputsHere(w *verb.World) (config.Inputs, error) {
	dir, err := RealDir(w.Dir)
	if err != nil {
		return config.Inputs{}, err
	}
	return ConfigInputs(w, WorkspaceOf(dir, w.Getenv("HOME")), config.Flags{})
}

// RealDir returns a directory without symbolic links; "" stands for a working
// directory that is gone.
func RealDir(dir string) (string, error) {
	if dir == "" {
		return "", verb.Usage("change to a directory that exists", "the working directory does not exist")
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", verb.Usage("change to a directory that exists", "working directory: %w", err)
	}
	return real, nil
}

// ConfigInputs returns the inputs of the configuration of a session in the
// workspace. The workspace may be reached by symbolic links.
func ConfigInputs(w *verb.World, workspace string, f config.Flags) (config.Inputs, error) {
	real, err := filepath.EvalSymlinks(workspace)
	if err != nil {
		return config.Inputs{}, &verb.Error{Code: verb.ExitUsage, Err: fmt.Errorf("workspace: %w", err), Hint: "name a directory that exists"}
	}
	m, err := config.ThisMachine()
	if err != nil {
		return config.Inputs{}, &verb.Error{Code: verb.ExitInternal, Err: fmt.Errorf("measure the machine's memory: %w", err)}
	}
	home := w.Getenv("HOME")
	if !filepath.IsAbs(home) {
		return config.Inputs{}, verb.Usage("set HOME to your home directory", "HOME is %q; want an absolute path", home)
	}
	return config.Inputs{
		Workspace: real, Home: filepath.Clean(home),
		XDGConfigHome: w.Getenv("XDG_CONFIG_HOME"), XDGStateHome: w.Getenv("XDG_STATE_HOME"), XDGCacheHome: w.Getenv("XDG_CACHE_HOME"),
		Tools: config.Tools(filepath.Clean(home), w.Getenv), Flags: f, Machine: m,
	}, nil
}

// LoadConfig returns the effective configuration of a session in the
// workspace. The error carries exit code 2 and says what to do.
func LoadConfig(w *verb.World, workspace string, f config.Flags) (*config.Config, error) {
	in, err := ConfigInputs(w, workspace, f)
	if err != nil {
		return nil, err
	}
	c, err := config.Load(in)
	if err != nil {
		return nil, ConfigError(err)
	}
	return c, nil
}

// ConfigError gives an error of the configuration its exit code and hint.
func ConfigError(err error) error {
	hint := "see \"bawn config --help\""
	var errs config.Errors
	if errors.As(err, &errs) && errs.Hint() != "" {
		hint = errs.Hint()
	} else if len(errs) > 0 && errs[0].Place.Layer == config.Command {
		hint = "see \"bawn run --help\""
	}
	return &verb.Error{Code: verb.ExitUsage, Err: err, Hint: hint}
}

// Absolute returns a path as one from the root; a relative one starts in the working
// directory.
func Absolute(w *verb.World, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(w.Dir, path)
}

// WorkspaceOf returns the git repository around dir, as long as that is not
// the home directory or above it; otherwise dir itself.
func WorkspaceOf(dir, home string) string {
	home, _ = filepath.EvalSymlinks(home)
	for d := dir; d != "/" && d != "." && d != home && !strings.HasPrefix(home, d+"/"); d = filepath.Dir(d) {
		if _, err := os.Lstat(filepath.Join(d, ".git")); err == nil {
			return d
		}
	}
	return dir
}
