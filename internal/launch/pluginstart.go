package launch

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/bawn-dev/bawn/internal/plugin"
	"github.com/bawn-dev/bawn/internal/pluginhook"
)

// PluginOptions are what differs between those who start a plugin.
type PluginOptions struct {
	fetch bool // what package managers fetch may be fetched
	Quiet bool
}

// PluginSession is the command that starts a plugin as a guest of its own. The
// caller closes its ExtraFiles once it runs.
func (e *Env) PluginSession(dirs plugin.Dirs, m *plugin.Manifest, workspace string, o PluginOptions) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	at, err := dirs.Place(m.Name, workspace)
	if err != nil {
		return nil, err
	}
	at.Fetch = o.fetch || !dirs.Complete(m)
	spec, err := e.parse(slices.Concat(m.RunFlags(at), []string{"--"}, m.Argv()))
	if err != nil {
		return nil, err
	}
	spec.CacheDirs, spec.Quiet, spec.Plugin = m.CacheDirs(at), o.Quiet, true
	cmd, _, err := Launcher(filepath.Join(filepath.Dir(self), "bawn"), spec)
	if err != nil {
		return nil, err
	}
	cmd.Env, cmd.Dir, cmd.SysProcAttr = e.Environ, at.Own, &syscall.SysProcAttr{}
	return cmd, nil
}

// StartPlugin starts a plugin on pipes. Closing its standard input and a SIGTERM
// end it; the rest of the guest dies with it.
func (e *Env) StartPlugin(dirs plugin.Dirs, m *plugin.Manifest, workspace string) (*pluginProcess, error) {
	cmd, err := e.PluginSession(dirs, m, workspace, PluginOptions{fetch: true})
	if err != nil {
		return nil, err
	}
	defer func() { _ = closeAll(cmd.ExtraFiles...) }()
	cmd.Dir, cmd.Stderr = e.Dir, e.Stderr
	stdin, w, err1 := os.Pipe()
	r, stdout, err2 := os.Pipe()
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	cmd.Stdin, cmd.Stdout = stdin, stdout
	err = cmd.Start()
	if err := errors.Join(err, stdin.Close(), stdout.Close()); err != nil {
		return nil, errors.Join(err, w.Close(), r.Close())
	}
	p := &pluginProcess{In: w, Out: r}
	p.End = func() {
		_ = w.Close() // it may be closed by now
		_ = cmd.Process.Signal(syscall.SIGTERM)
	}
	p.Wait = func(failed bool) error {
		hard := time.AfterFunc(10*time.Second, func() { _ = cmd.Process.Kill() })
		defer hard.Stop()
		err := cmd.Wait()
		if !failed { // it was ended by us
			err = nil
		}
		return errors.Join(err, r.Close())
	}
	return p, nil
}

// startHook starts a hook plugin as a guest of its own, on pipes.
func (e *Env) startHook(dirs plugin.Dirs, m *plugin.Manifest, workspace string) (pluginhook.Process, error) {
	cmd, err := e.PluginSession(dirs, m, workspace, PluginOptions{Quiet: true})
	if err != nil {
		return pluginhook.Process{}, err
	}
	defer func() { _ = closeAll(cmd.ExtraFiles...) }()
	cmd.SysProcAttr.Setsid = true // the agent's terminal, and its Ctrl-C, are not for it
	DieWithParent(cmd.SysProcAttr)
	return onPipes(cmd)
}

// hookPatience is how long a hook plugin has to end by itself.
const hookPatience = 3 * time.Second

// onPipes starts a command. Its standard error is dropped: an agent has the
// terminal.
func onPipes(cmd *exec.Cmd) (pluginhook.Process, error) {
	stdin, w, err1 := os.Pipe()
	r, stdout, err2 := os.Pipe()
	if err := errors.Join(err1, err2); err != nil {
		return pluginhook.Process{}, errors.Join(err, closeAll(stdin, w, r, stdout))
	}
	cmd.Stdin, cmd.Stdout = stdin, stdout
	err := cmd.Start()
	if err = errors.Join(err, closeAll(stdin, stdout)); err != nil {
		return pluginhook.Process{}, errors.Join(err, closeAll(w, r))
	}
	end := sync.OnceFunc(func() {
		_ = closeAll(w, r)
		_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended
		hard := time.AfterFunc(hookPatience, func() { _ = cmd.Process.Kill() })
		defer hard.Stop()
		_ = cmd.Wait() // how it ends says nothing more
	})
	return pluginhook.Process{In: w, Out: r, End: end}, nil
}

func closeAll(files ...*os.File) error {
	var errs []error
	for _, f := range files {
		if f != nil {
			errs = append(errs, f.Close())
		}
	}
	return errors.Join(errs...)
}

// A pluginProcess is a bawn run whose guest is a plugin.
type pluginProcess struct {
	In, Out *os.File
	End     func()
	Wait    func(failed bool) error
}
