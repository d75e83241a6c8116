package undocli

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bawn-dev/bawn/internal/checkpoint"
	"github.com/bawn-dev/bawn/internal/gitstore"
	"github.com/bawn-dev/bawn/internal/launch"
	"github.com/bawn-dev/bawn/internal/redact"
	"github.com/bawn-dev/bawn/internal/undo"
	"github.com/bawn-dev/bawn/internal/verb"
)

type diffFlags struct {
	cwd, tool              string
	stat, nameOnly, asJSON bool
}

// NewDiff returns the verb.
func NewDiff(e *launch.Env) *cobra.Command {
	f := &diffFlags{}
	c := &cobra.Command{
		Use:   "diff [flags] [SESSION|COPY|CHECKPOINT] [PATH...]",
		Short: "Show what a session has changed",
		Long: `Show what a session has changed in the files of the workspace and in the refs of its
repository, from its start to its end; of one that still runs, up to now. Without a
name it is the last session that has changed anything here. With the ID of a
checkpoint: what differs from it now. With the name of a copy: what its session has
changed there, taken over or not. With paths, only files are compared.

Characters that a terminal would obey or hide are written as escapes.`,
		Example: `  bawn diff
  bawn diff --stat
  bawn diff k3xr src
  bawn diff fix-auth --tool
  bawn diff --name-only 20261127-093015.120-k3xr`,
		Args: func(*cobra.Command, []string) error {
			n := 0
			for _, given := range []bool{f.stat, f.nameOnly, f.asJSON, f.tool != ""} {
				if given {
					n++
				}
			}
			if n > 1 {
				return verb.Usage("leave out all but one", "want one of --stat, --name-only, --tool and --json")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error { return f.run(e, args, c.ArgsLenAtDash()) },
	}
	fl := c.Flags()
	fl.BoolVar(&f.stat, "stat", false, "print how many lines of each file differ")
	fl.BoolVar(&f.nameOnly, "name-only", false, "print the names of the files that differ")
	fl.StringVar(&f.tool, "tool", "", "show files in the `tool` that git difftool starts: diff.tool of your git configuration, or --tool=NAME")
	fl.Lookup("tool").NoOptDefVal = gitsTool
	fl.BoolVar(&f.asJSON, "json", false, "print JSON: {\"changes\": [...], \"git\": [...]}")
	addCwd(c, &f.cwd)
	c.ValidArgsFunction = complete(e, &f.cwd)
	return c
}

func (f *diffFlags) run(e *launch.Env, args []string, dash int) error {
	w, err := open(e, f.cwd)
	if err != nil {
		return err
	}
	d, err := w.compare(e, args, dash)
	if err != nil {
		return err
	}
	defer d.Close()
	if f.asJSON {
		return verb.WriteJSON(e.Stdout, jsonOf(d))
	}
	if f.tool != "" {
		return w.useTool(e, d, f.tool)
	}
	return page(e, func(out io.Writer, colour bool) error {
		p := printer{w: w, out: out, colour: colour}
		if !f.nameOnly {
			p.git(d.Git())
		}
		for c := range d.All() {
			switch {
			case f.nameOnly:
				p.line("", w.show(c.Path))
			case f.stat:
				p.stat(c)
			default:
				p.change(c)
			}
		}
		if f.stat {
			p.total()
		}
		return p.err
	})
}

// compare compares what the arguments name: a copy, a session or a checkpoint.
func (w *workspace) compare(e *launch.Env, args []string, dash int) (*undo.Diff, error) {
	r, err := w.copyNamed(args, dash)
	if err != nil {
		return nil, err
	}
	if r != nil {
		return w.diffCopy(e, r, args[1:])
	}
	t, paths, err := w.choose(args, dash)
	if err != nil {
		return nil, err
	}
	d, err := undo.Compare(w.place(), t, paths, launch.OwnDirs(e))
	if err != nil {
		return nil, internal(err)
	}
	return d, nil
}

// A report is a difference in JSON.
type report struct {
	Changes []change             `json:"changes"`
	Git     []gitstore.RefChange `json:"git"`
}

func jsonOf(d *undo.Diff) report {
	r := report{Changes: []change{}, Git: append([]gitstore.RefChange{}, d.Refs()...)}
	for c := range d.All() {
		r.Changes = append(r.Changes, changeOf(c))
	}
	return r
}

// A change is one in JSON.
type change struct {
	Path    string `json:"path"`
	Status  string `json:"status"` // added, deleted, modified
	OldMode string `json:"oldMode,omitempty"`
	NewMode string `json:"newMode,omitempty"`
	OldSize int64  `json:"oldSize"`
	NewSize int64  `json:"newSize"`
	Added   int    `json:"added"`
	Deleted int    `json:"deleted"`
	Binary  bool   `json:"binary,omitempty"`
}

func changeOf(c *undo.Change) change {
	out := change{Path: c.Path, Status: status(c), Binary: c.Binary, Added: c.Added, Deleted: c.Deleted}
	if c.Old != nil {
		out.OldMode, out.OldSize = c.Old.GitMode(), c.Old.Size
	}
	if c.New != nil {
		out.NewMode, out.NewSize = c.New.GitMode(), c.New.Size
	}
	return out
}

func status(c *undo.Change) string {
	switch {
	case c.Old == nil:
		return "added"
	case c.New == nil:
		return "deleted"
	}
	return "modified"
}

// A printer writes differences for people. The first error ends it.
type printer struct {
	w                     *workspace
	out                   io.Writer
	colour                bool
	files, added, deleted int
	err                   error
}

// line writes one line in a colour. The text is safe.
func (p *printer) line(colour, text string) {
	if p.err != nil {
		return
	}
	if p.colour && colour != "" {
		text = "\x1b[" + colour + "m" + text + "\x1b[0m"
	}
	_, p.err = io.WriteString(p.out, text+"\n")
}

// git writes a line for each ref.
func (p *printer) git(list []undo.Step) {
	for _, s := range list {
		p.line(cyan, "git "+redact.Visible(s.Ref)+": "+redact.Visible(s.Detail))
	}
}

const (
	bold  = "1"
	red   = "31"
	green = "32"
	cyan  = "36"
)

// change writes one file.
func (p *printer) change(c *undo.Change) {
	p.head(c)
	for _, h := range c.Hunks {
		p.hunk(h)
	}
}

// head writes what comes before a file's lines.
func (p *printer) head(c *undo.Change) {
	name := p.w.show(c.Path)
	p.line(bold, "diff "+name)
	switch {
	case c.Old == nil:
		p.line(bold, "new "+kindWord(c.New)+", mode "+c.New.GitMode())
	case c.New == nil:
		p.line(bold, "deleted "+kindWord(c.Old)+", mode "+c.Old.GitMode())
	case c.Old.GitMode() != c.New.GitMode():
		p.line(bold, "mode "+c.Old.GitMode()+" to "+c.New.GitMode())
	}
	switch {
	case c.Missing != nil:
		p.line("", "its content can't be shown: "+redact.Visible(c.Missing.Error()))
	case c.Binary:
		p.line("", fmt.Sprintf("binary, %s to %s", size(c.Old), size(c.New)))
	case len(c.Hunks) > 0:
		p.line(bold, "--- "+side(c.Old, name))
		p.line(bold, "+++ "+side(c.New, name))
	}
}

func (p *printer) hunk(h undo.Hunk) {
	p.line(cyan, fmt.Sprintf("@@ -%d,%d +%d,%d @@", h.OldStart, h.OldLines, h.NewStart, h.NewLines))
	for _, e := range h.Edits {
		p.line(map[byte]string{'-': red, '+': green}[e.Op], string(e.Op)+text(e.Text))
		if e.Open {
			p.line("", `\ No newline at end of file`)
		}
	}
}

// text escapes a line, but for tabs.
func text(s string) string {
	parts := strings.Split(s, "\t")
	for i := range parts {
		parts[i] = redact.Visible(parts[i])
	}
	return strings.Join(parts, "\t")
}

func kindWord(e *checkpoint.Entry) string {
	switch e.Kind {
	case checkpoint.Directory:
		return "directory"
	case checkpoint.Symlink:
		return "link"
	case checkpoint.Pipe:
		return "pipe"
	case checkpoint.File, checkpoint.Large:
		return "file"
	}
	return "entry without content"
}

func side(e *checkpoint.Entry, name string) string {
	if e == nil {
		return "/dev/null"
	}
	return name
}

func size(e *checkpoint.Entry) string {
	if e == nil {
		return "nothing"
	}
	return undo.Bytes(e.Size)
}

// stat writes one line for a file.
func (p *printer) stat(c *undo.Change) {
	p.files++
	p.added, p.deleted = p.added+c.Added, p.deleted+c.Deleted
	what := fmt.Sprintf("+%d -%d", c.Added, c.Deleted)
	switch {
	case c.Binary || c.Missing != nil:
		what = fmt.Sprintf("%s to %s", size(c.Old), size(c.New))
	case len(c.Hunks) > 0:
	case c.Old != nil && c.New != nil:
		what = "mode"
	case c.Old == nil:
		what = kindWord(c.New)
	default:
		what = kindWord(c.Old)
	}
	p.line("", fmt.Sprintf("%-8s %-16s %s", status(c), what, p.w.show(c.Path)))
}

func (p *printer) total() {
	if p.files > 0 {
		p.line("", fmt.Sprintf("%s, +%d -%d lines", undo.Files(p.files), p.added, p.deleted))
	}
}

var errPager = errors.New("the pager failed")
