package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/bawn-dev/bawn/bench/measure"
)

// A surrounding is what tasks run in, each in a workspace of its own.
type surrounding struct {
	name string
	// words stand before those of a command that runs in the workspace.
	words func(b *beside, who measure.Who) ([]string, error)
	// workspace makes the directory to work in of a workspace that is filled, or is nil.
	workspace func(b *beside, who measure.Who) (string, error)
}

// surroundings are what a session on a copy stands beside. Of a git worktree nothing
// remains once it is made: what it costs is the start.
var surroundings = []surrounding{
	{name: "bare"},
	{name: "live", words: func(b *beside, _ measure.Who) ([]string, error) { return b.session(), nil }},
	{name: "copy", words: func(b *beside, _ measure.Who) ([]string, error) { return b.session("--copy"), nil }},
	{name: "bwrap", words: (*beside).bwrap},
	{name: "worktree", workspace: (*beside).worktree},
	{name: "docker volume", words: (*beside).volume},
}

// A beside measures the tasks in all surroundings.
type beside struct {
	o          *options
	who        measure.Who
	self, bawn string
	drivers    map[string]map[string]*measure.Peer // by fixture and surrounding
	series     map[string]map[string]measure.Series
	closers    []func() error
}

func (b *beside) session(flags ...string) []string {
	return append(append([]string{b.bawn, "run", "-q", "--net", "none"}, flags...), "--")
}

func (b *beside) bwrap(who measure.Who) ([]string, error) {
	program, err := exec.LookPath("bwrap")
	return []string{
		program, "--unshare-all", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--tmpfs", "/run", "--bind", who.Workspace, who.Workspace,
		"--chdir", who.Workspace, "--new-session", "--die-with-parent", "--cap-drop", "ALL", "--",
	}, err
}

// worktree commits all of a workspace and makes a worktree of it.
func (b *beside) worktree(who measure.Who) (string, error) {
	dir := who.Workspace + "-tree"
	if err := who.Mkdir(dir); err != nil {
		return "", err
	}
	line := `test -d .git || git init -q; git add -A && git -c gc.auto=0 -c user.name=a -c user.email=a@example.org commit -q --allow-empty -m all && git worktree add -q --detach "$0" && for d in .gotmp */; do mkdir -p "$0/$d"; done`
	return dir, b.done(who.Command("sh", "-c", line, dir))
}

// volume makes a volume of the engine that -docker names, with what a workspace holds,
// and has commands run in containers that mount it.
func (b *beside) volume(who measure.Who) ([]string, error) {
	if b.o.docker == "" {
		return nil, errors.New("-docker names no engine")
	}
	docker := []string{"docker", "-H", b.o.docker}
	name := "bawn-bench-" + filepath.Base(who.Workspace)
	run := func(args ...string) error {
		return b.done(exec.Command(docker[0], append(docker[1:], args...)...))
	}
	load := exec.Command(docker[0], append(docker[1:], "import", "-", "bawn-bench:latest")...)
	load.Stdin = image()
	user := fmt.Sprintf("%d:%d", who.UID, who.UID)
	mounts := []string{"run", "--rm", "-i", "--network", "none", "-v", "/usr:/usr:ro", "-v", name + ":" + who.Workspace, "-v", filepath.Dir(b.self) + ":" + filepath.Dir(b.self) + ":ro"}
	b.closers = append(b.closers, func() error { return run("volume", "rm", "-f", name) })
	if err := errors.Join(b.done(load), run("volume", "create", name),
		run(append(mounts, "-v", who.Workspace+":/from:ro", "bawn-bench", "sh", "-c", `cp -a /from/. "$0" && chown -R "$1" "$0"`, who.Workspace, user)...)); err != nil {
		return nil, err
	}
	words := append(append(docker, mounts...), "--user", user, "-w", who.Workspace)
	for _, v := range who.Environ() {
		words = append(words, "-e", v)
	}
	return append(words, "bawn-bench"), nil
}

// image is one whose programs are the host's: its /usr is mounted.
func image() io.Reader {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, name := range []string{"bin", "sbin", "lib", "lib64"} {
		_ = w.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: "usr/" + name}) // to memory
	}
	for _, name := range []string{"usr", "tmp", "proc", "sys", "dev", "etc"} {
		_ = w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: 0o1777})
	}
	_ = w.Close()
	return &b
}

func (b *beside) done(cmd *exec.Cmd) error {
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%q: %w: %s", cmd.Args, err, out)
	}
	return nil
}

// measure takes all samples. A surrounding that this machine does not have is left out,
// and said.
func (b *beside) measure(w *measure.Report) error {
	tasks, missing := b.o.chosen()
	for _, m := range missing {
		w.Line("# %s", m)
	}
	in := surroundings[:0:0]
	for _, s := range surroundings {
		var err error
		for _, t := range tasks {
			if err == nil && b.drivers[t.where][s.name] == nil {
				err = b.open(s, t.where)
			}
		}
		if err != nil {
			w.Line("# %s: %s", s.name, err)
			continue
		}
		in = append(in, s)
	}
	for n := range max(b.o.rounds, b.o.cold) + 1 { // the first one warms up
		for _, t := range tasks {
			if n > t.rounds(b.o) {
				continue
			}
			for _, i := range measure.Order(n, len(in)) {
				if err := b.round(t, in[i].name, n > 0); err != nil {
					return fmt.Errorf("%s, %s: %w", in[i].name, t.name, err)
				}
			}
		}
	}
	b.write(w, in, tasks)
	return nil
}

// open fills a workspace and starts the driver of a surrounding in it.
func (b *beside) open(s surrounding, fixture string) error {
	who, err := b.who.In(strings.ReplaceAll(s.name, " ", "-") + "-" + fixture)
	if err != nil {
		return err
	}
	fill, err := measure.StartPeer(who.Command(b.self, "-serve", who.Workspace))
	if err != nil {
		return err
	}
	if err := errors.Join(fill.Ask(question{Fixture: fixture}, nil), fill.Close()); err != nil {
		return err
	}
	var words []string
	if s.words != nil {
		if words, err = s.words(b, who); err != nil {
			return err
		}
	}
	if s.workspace != nil {
		if who.Workspace, err = s.workspace(b, who); err != nil {
			return err
		}
	}
	p, err := measure.StartPeer(who.Command(append(words, b.self, "-serve", who.Workspace)...))
	if err != nil {
		return err
	}
	if b.drivers[fixture] == nil {
		b.drivers[fixture] = map[string]*measure.Peer{}
	}
	b.drivers[fixture][s.name] = p
	return nil
}

// round has one driver prepare a task, and run it.
func (b *beside) round(t task, in string, counts bool) error {
	var s measure.Sample
	d := b.drivers[t.where][in]
	if err := errors.Join(d.Ask(question{Prepare: t.name}, nil), d.Ask(question{Task: t.name}, &s)); err != nil {
		return err
	}
	if b.series[t.name] == nil {
		b.series[t.name] = map[string]measure.Series{}
	}
	if counts {
		b.series[t.name][in] = append(b.series[t.name][in], s)
	}
	return nil
}

func (b *beside) close() error {
	var err error
	for _, drivers := range b.drivers {
		for _, d := range drivers {
			err = errors.Join(err, d.Close())
		}
	}
	for _, c := range b.closers {
		err = errors.Join(err, c())
	}
	return err
}

// write adds a table: of each task the median unsandboxed, and in each surrounding the
// least and the ratio to that.
func (b *beside) write(w *measure.Report, in []surrounding, tasks []task) {
	w.Line("\nas %s, each in a workspace of its own, in something that runs already: least in ms, × bare", b.who.Name)
	heading := []string{"task", "n"}
	for _, s := range in {
		heading = append(heading, s.name)
	}
	var rows [][]string
	for _, t := range tasks {
		bare := b.series[t.name][in[0].name]
		row := []string{t.name, fmt.Sprint(len(bare))}
		for _, s := range in {
			series := b.series[t.name][s.name]
			cell := measure.Milliseconds(series.Min())
			if s.name != in[0].name {
				cell += " × " + measure.Ratio(series, bare).String()
			}
			row = append(row, cell)
		}
		rows = append(rows, row)
	}
	w.Table(heading, rows)
}

// measureBeside measures the tasks in a session on a copy beside other surroundings.
func (o *options) measureBeside(self, program string, whos []measure.Who) error {
	r := measure.NewReport("work-beside: ordinary work on a copy, beside a live session and others", os.Stdout)
	for _, who := range whos {
		b := &beside{o: o, who: who, self: self, bawn: program, drivers: map[string]map[string]*measure.Peer{}, series: map[string]map[string]measure.Series{}}
		if err := errors.Join(b.measure(r), b.close()); err != nil {
			return err
		}
	}
	r.Load("after")
	_, err := r.Save(o.Out, "work-beside")
	return err
}
