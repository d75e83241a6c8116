// Command checkpoint measures what a checkpoint of a workspace costs, beside other
// programs that keep the same tree. See bench/README.md.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/bawn-dev/bawn/bench/measure"
	"github.com/bawn-dev/bawn/internal/checkpoint"
)

type options struct {
	*measure.Bench
	rounds, first, files int
	peers                string
	take                 bool
}

func main() {
	o := options{Bench: measure.Flags("checkpoint", "user")}
	flag.IntVar(&o.rounds, "rounds", 9, "how often each variant runs after the first time")
	flag.IntVar(&o.first, "first", 5, "how often each variant stores everything")
	flag.IntVar(&o.files, "files", 10_000, "files of the tree; bawn is also measured with five times as many")
	flag.StringVar(&o.peers, "peers", "git,cp,restic", "programs to run beside bawn, with commas between; empty for bawn alone")
	flag.BoolVar(&o.take, "take", false, "take a checkpoint of a directory in a store: DIRECTORY STORE (internal)")
	o.Main(o.main)
}

func (o *options) main() error {
	if o.take {
		return take(flag.Arg(0), flag.Arg(1))
	}
	if o.rounds < 1 || o.first < 1 || o.files < 10 {
		return errors.New("-rounds, -first, -files: want at least 1, 1, and 10")
	}
	return o.OnGround(o.measure)
}

// variants are bawn and the peers asked for.
func (o *options) variants() ([]string, error) {
	list := []string{whole}
	for name := range strings.SplitSeq(o.peers, ",") {
		known := map[string]string{"git": git, "cp": cp, "restic": restic}
		if known[name] == "" && o.peers != "" {
			return nil, fmt.Errorf("-peers: %q is not git, cp or restic", name)
		}
		if name != "" {
			list = append(list, known[name])
		}
	}
	return list, nil
}

// take prints how many nanoseconds a guest would have waited.
func take(root, dir string) error {
	s, err := checkpoint.Open(dir, time.Second)
	if err != nil {
		return err
	}
	begun := time.Now()
	t, err := s.Scan(checkpoint.Options{Why: checkpoint.AtStart, Roots: []string{root}})
	if err != nil {
		return err
	}
	_, err = t.Keep(nil)
	waited := time.Since(begun)
	if err = errors.Join(err, t.Finish()); err != nil {
		return err
	}
	t.Close()
	fmt.Println(waited.Nanoseconds())
	return s.Close()
}

// The variants.
const (
	waits  = "bawn, scan and keep"
	whole  = "bawn, a process"
	git    = "git stash create"
	cp     = "cp -a --reflink=auto"
	restic = "restic backup"
)

// A bench is the tree of one user, with what each variant has kept of it.
type bench struct {
	who        measure.Who
	self, tree string
	files      int
	store      string // of this round
	series     map[string]measure.Series
}

func (o *options) measure(g *measure.Ground) error {
	self, whos, err := o.Ready(g)
	if err != nil {
		return err
	}
	variants, err := o.variants()
	if err != nil {
		return err
	}
	r := measure.NewReport("checkpoint: what it costs to keep a workspace, beside other programs", os.Stdout)
	err = measure.Each(whos, func(who measure.Who) error {
		r.Line("\nas %s", who.Name)
		if err := o.size(r, who, self, o.files, 10_000, variants, 20, 1500); err != nil {
			return err
		}
		return o.size(r, who, self, 5*o.files, 4_000, []string{whole}, 0, 0)
	})
	if err != nil {
		return err
	}
	r.Load("after")
	return o.Write(r)
}

// size measures a tree of so many files of so many bytes.
func (o *options) size(r *measure.Report, who measure.Who, self string, files, bytes int, variants []string, again, first float64) error {
	who, err := who.In(strconv.Itoa(files))
	if err != nil {
		return err
	}
	defer os.RemoveAll(who.Workspace)
	b := &bench{who: who, self: self, tree: filepath.Join(who.Workspace, "tree"), files: files}
	if err := b.make(files, bytes); err != nil {
		return err
	}
	name := fmt.Sprintf("%d files, %d MB", files, files*bytes/1_000_000)
	if err := b.phase(r, name+", the first time", o.first, -1, variants); err != nil {
		return err
	}
	if first > 0 {
		r.Goal("the first time, ms", measure.Value(b.series[waits]), measure.AtMost(first))
	}
	for _, n := range []int{0, 1, 100, 1000} {
		if err := b.phase(r, fmt.Sprintf("%s, %d changed", name, n), o.rounds, n, variants); err != nil {
			return err
		}
		if n == 0 && again > 0 {
			r.Goal("nothing changed, ms", measure.Value(b.series[waits]), measure.AtMost(again))
		}
	}
	return nil
}

// text is like source code to a compressor: words of a few letters, in lines.
func text(n, size int) []byte {
	var b bytes.Buffer
	x := uint32(n + 1)
	for b.Len() < size {
		x = x*1664525 + 1013904223
		b.WriteString("func value"[:3+x>>28%8])
		fmt.Fprintf(&b, " %x\n", x>>20)
	}
	return b.Bytes()[:size]
}

func (b *bench) file(n int) string {
	return filepath.Join(b.tree, fmt.Sprintf("d%d/e%d/file%d.go", n/500, n/12, n))
}

func (b *bench) make(files, bytes int) error {
	for n := range files {
		if err := os.MkdirAll(filepath.Dir(b.file(n)), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(b.file(n), text(n, bytes), 0o644); err != nil {
			return err
		}
	}
	return b.command("chown", "-R", fmt.Sprint(b.who.UID, ":", b.who.UID), b.who.Workspace)
}

// command runs a command as this process.
func (b *bench) command(argv ...string) error {
	out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%q: %w: %s", argv, err, out)
	}
	return nil
}

// phase lets the variants take turns: each round after n other files have changed; of
// -1 with nothing kept yet.
func (b *bench) phase(r *measure.Report, title string, rounds, n int, variants []string) error {
	b.series = map[string]measure.Series{}
	for round := range rounds + 1 { // the first is a warm-up
		if n < 0 {
			b.store = filepath.Join(b.who.Workspace, fmt.Sprint("kept", round))
			if err := b.who.Mkdir(b.store); err != nil {
				return err
			}
		}
		for i := range n {
			if err := os.WriteFile(b.file(i*7%b.files), append(text(i, 3000), fmt.Sprint(n, round)...), 0o644); err != nil {
				return err
			}
		}
		for _, i := range measure.Order(round, len(variants)) {
			if err := b.variant(variants[i], n < 0, round > 0); err != nil {
				return err
			}
		}
		if old := filepath.Join(b.who.Workspace, fmt.Sprint("kept", round-1)); n < 0 && round > 0 {
			if err := os.RemoveAll(old); err != nil {
				return err
			}
		}
	}
	b.report(r, title, variants)
	return nil
}

func (b *bench) report(r *measure.Report, title string, variants []string) {
	r.Line("\n%s", title)
	var rows [][]string
	base := b.series[whole]
	for _, name := range append([]string{waits}, variants...) {
		s := b.series[name]
		rows = append(rows, []string{name, measure.Milliseconds(s.Min()), measure.Milliseconds(s.Median()), measure.Milliseconds(s.P95()), measure.Ratio(s, base).String()})
	}
	r.Table([]string{"variant", "min ms", "median ms", "p95 ms", "× bawn, a process"}, rows)
}

// variant runs one variant.
func (b *bench) variant(name string, first, counts bool) error {
	at := filepath.Join(b.store, strings.Fields(name)[0])
	var setup, run []string
	switch name {
	case whole:
		run = []string{b.self, "-take", b.tree, at}
	case git:
		run = []string{"git", "stash", "create"}
		if first {
			setup, run = []string{"git", "init", "-q"}, []string{"sh", "-c", "git add -A && git -c gc.auto=0 commit -qm all"}
		}
	case cp:
		if err := os.RemoveAll(at); err != nil {
			return err
		}
		run = []string{"cp", "-a", "--reflink=auto", b.tree, at}
	case restic:
		run = []string{"restic", "-q", "backup", b.tree}
		if first {
			setup = []string{"restic", "-q", "init"}
		}
	}
	if setup != nil {
		if _, err := measure.Run(b.as(at, setup)); err != nil {
			return err
		}
	}
	cmd := b.as(at, run)
	var out bytes.Buffer
	cmd.Stdout = &out
	s, err := measure.Run(cmd)
	if err != nil || !counts {
		return err
	}
	b.series[name] = append(b.series[name], s)
	if name == whole {
		ns, err := strconv.ParseInt(strings.TrimSpace(out.String()), 10, 64)
		if err != nil {
			return err
		}
		b.series[waits] = append(b.series[waits], measure.Sample{Wall: time.Duration(ns)})
	}
	return nil
}

// as is a command of the user's, with what git and restic have to know.
func (b *bench) as(at string, argv []string) *exec.Cmd {
	cmd := b.who.Command(argv...)
	cmd.Dir, cmd.Stderr = b.tree, os.Stderr
	cmd.Env = append(cmd.Env, "GIT_DIR="+at, "GIT_WORK_TREE="+b.tree, "RESTIC_REPOSITORY="+at, "RESTIC_PASSWORD=bench",
		"GIT_AUTHOR_NAME=b", "GIT_AUTHOR_EMAIL=b@b", "GIT_COMMITTER_NAME=b", "GIT_COMMITTER_EMAIL=b@b")
	return cmd
}
