package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/bench/measure"
	"github.com/bawn-dev/bawn/internal/sandbox"
)

// Who does something.
const (
	bawnName = "bawn"
	bareName = "bare"
)

// patience ends what hangs.
const patience = 5 * time.Minute

// A field is where it is measured: programs, a workspace and what runs until
// the end.
type field struct {
	who        measure.Who
	bawn, self string
	program    string // "true"
	null       *os.File
	environ    []string
	closers    []func() error
}

func newField(g *measure.Ground) (*field, error) {
	whos, err := g.Whos(map[bool]string{true: "root", false: "user"}[os.Geteuid() == 0])
	if err != nil {
		return nil, err
	}
	f := &field{who: whos[0], environ: whos[0].Environ()}
	var errs [4]error
	f.bawn, errs[0] = g.Build("cmd/bawn")
	_, errs[1] = g.Build("cmd/bawnd")
	f.self, errs[2] = g.Self()
	f.null, errs[3] = os.OpenFile(os.DevNull, os.O_RDWR, 0)
	f.program = "/bin/true"
	return f, errors.Join(errs[:]...)
}

// close ends what runs, the last started first.
func (f *field) close() error {
	var errs []error
	for len(f.closers) > 0 {
		last := len(f.closers) - 1
		errs = append(errs, f.closers[last]())
		f.closers = f.closers[:last]
	}
	return errors.Join(append(errs, f.null.Close())...)
}

// providers returns the ways of those that only names, and why others are left
// out.
func (f *field) providers(only string) (list []way, missing []string, err error) {
	list = f.ways(bareName, bareName, nil, nil)
	for name := range strings.SplitSeq(only, ",") {
		open, ok := map[string]func(*field) ([]way, error){"native": (*field).native, "bwrap": (*field).bwrap, "docker": (*field).docker, "gvisor": (*field).gvisor}[name]
		if !ok {
			return nil, nil, fmt.Errorf("-only %q: no such provider; want some of native,bwrap,docker,gvisor", name)
		}
		ways, err := open(f)
		if err != nil {
			missing = append(missing, fmt.Sprintf("%s: %v", name, err))
			continue
		}
		list = append(list, ways...)
	}
	return list, missing, nil
}

// ways are the four of one way to start something: start are the words in front
// of a command in a new sandbox, next those in one that runs.
func (f *field) ways(provider, who string, start, next []string) []way {
	run := func(words []string, argv ...string) func() (measure.Sample, error) {
		return func() (measure.Sample, error) { return f.run(append(words[:len(words):len(words)], argv...)) }
	}
	list := []way{{provider, who, cold, run(start, f.program)}}
	if next != nil || who == bareName {
		list = append(list, way{provider, who, warm, run(next, f.program)})
	}
	for name, task := range map[string]string{build: "build", files: "files"} {
		list = append(list, way{provider, who, name, f.work(append(start[:len(start):len(start)], f.self, "-task", task, "-dir", "."))})
	}
	return list
}

// command prepares words.
func (f *field) command(words []string) (*exec.Cmd, *time.Timer) {
	cmd := f.who.Command(words...)
	cmd.Env = f.environ
	return cmd, time.AfterFunc(patience, func() {
		if cmd.Process != nil {
			_ = cmd.Process.Kill()
		}
	})
}

// run takes a sample of a whole command.
func (f *field) run(words []string) (measure.Sample, error) {
	cmd, timer := f.command(words)
	defer timer.Stop()
	complaints, err := os.CreateTemp("", "bawn-bench-")
	if err != nil {
		return measure.Sample{}, err
	}
	defer os.Remove(complaints.Name())
	defer complaints.Close()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = f.null, f.null, complaints
	return measure.Run(cmd)
}

// work runs a command that times itself.
func (f *field) work(words []string) func() (measure.Sample, error) {
	return func() (s measure.Sample, err error) {
		cmd, timer := f.command(words)
		defer timer.Stop()
		var errs strings.Builder
		cmd.Stderr = &errs
		out, err := cmd.Output()
		if err == nil {
			err = json.Unmarshal(out, &s)
		}
		if err != nil {
			return s, fmt.Errorf("%q: %w: %.500s", words, err, &errs)
		}
		return s, nil
	}
}

// session returns the way in which a command runs in a session of bawn's that
// runs already: by its ticket, as a split session's commands do.
func (f *field) session(p sandbox.Provider) (way, error) {
	plan, err := p.Plan(sandbox.Request{
		Session: bawn.Session{ID: fmt.Sprintf("bench-%s-%d", p.Name(), os.Getpid()), Isolation: bawn.Isolation{
			Workspace: f.who.Workspace, Network: bawn.NetworkNone, Protect: true, Env: []string{"PATH", "HOME"},
			Mounts: []bawn.Mount{{Path: f.who.Workspace, Access: bawn.ReadWrite, Why: "workspace"}},
		}},
		Argv: []string{f.program}, Dir: f.who.Workspace, Environ: f.environ,
	})
	if err != nil {
		return way{}, err
	}
	guest, err := p.Start(plan, func(sandbox.Denial) {})
	if err != nil {
		return way{}, err
	}
	f.closers = append(f.closers, guest.Close)
	return way{p.Name(), bawnName, warm, func() (measure.Sample, error) { return f.exec(guest) }}, nil
}

// exec takes a sample of a command in a session.
func (f *field) exec(g sandbox.Guest) (measure.Sample, error) {
	began := time.Now()
	p, err := g.Exec(sandbox.Command{Argv: []string{f.program}, Stdio: [3]*os.File{f.null, f.null, f.null}})
	if err != nil {
		return measure.Sample{}, err
	}
	var last sandbox.Change
	for last = range p.Changes() {
	}
	s := measure.Sample{Wall: time.Since(began)}
	if code := last.Status.ExitStatus(); code != 0 {
		return s, fmt.Errorf("%q ended with %d", f.program, code)
	}
	return s, nil
}

// bawnWays are bawn's own on a provider.
func (f *field) bawnWays(p sandbox.Provider, flags ...string) ([]way, error) {
	words := append([]string{f.bawn, "run", "-q", "--provider", p.Name(), "--net", "none"}, flags...)
	list := f.ways(p.Name(), bawnName, append(words, "--"), nil)
	w, err := f.session(p)
	return append(list, w), err
}

// configure writes the user's configuration.
func (f *field) configure(lines string) error {
	dir := filepath.Join(f.who.Home, ".config", "bawn")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	file, err := os.OpenFile(filepath.Join(dir, "config.toml"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = file.WriteString(lines)
	return errors.Join(err, file.Close())
}

func ms(d time.Duration) float64 { return float64(d) / 1e6 }
