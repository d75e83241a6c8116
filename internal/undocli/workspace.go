// Package undocli holds the verbs that show and take back what sessions have done:
// "bawn undo", "bawn diff" and "bawn checkpoints".
package undocli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/bawn-dev/bawn/internal/checkpoint"
	"github.com/bawn-dev/bawn/internal/fspath"
	"github.com/bawn-dev/bawn/internal/launch"
	"github.com/bawn-dev/bawn/internal/redact"
	"github.com/bawn-dev/bawn/internal/settings"
	"github.com/bawn-dev/bawn/internal/undo"
	"github.com/bawn-dev/bawn/internal/verb"
)

// A workspace is one with its checkpoints.
type workspace struct {
	state, registry string
	dir             string // from which relative paths lead
	path            string
	list            []checkpoint.Checkpoint
}

// open finds the workspace around a directory. In a directory without checkpoints it
// is the closest one above that has some.
func open(e *launch.Env, cwd string) (*workspace, error) {
	if where := launch.Inside(e); where != "" {
		return nil, &verb.Error{Code: verb.ExitDenied, Err: fmt.Errorf("this is a guest, in %s: checkpoints are the human's", where), Hint: "run it outside of the session"}
	}
	state, err := settings.StateDir(&e.World)
	if err != nil {
		return nil, err
	}
	dir := e.Dir
	if cwd != "" {
		dir = settings.Absolute(&e.World, cwd)
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, verb.Usage("name a directory that exists", "--cwd %q: %v", dir, err)
	}
	w := &workspace{state: state, registry: settings.RuntimeDir(&e.World, state), dir: real, path: settings.WorkspaceOf(real, e.Getenv("HOME"))}
	for at := w.path; ; at = filepath.Dir(at) {
		if _, err := os.Stat(checkpoint.Place(state, at)); err == nil {
			w.path = at
			break
		}
		if at == filepath.Dir(at) {
			break
		}
	}
	if w.list, err = checkpoint.List(w.place()); err != nil {
		return nil, internal(err)
	}
	return w, nil
}

func (w *workspace) place() string { return checkpoint.Place(w.state, w.path) }

func internal(err error) error {
	hint := ""
	if errors.Is(err, checkpoint.ErrBusy) {
		hint = "try again when it has finished"
	}
	return &verb.Error{Code: verb.ExitInternal, Err: errors.New(redact.Visible(err.Error())), Hint: hint}
}

// choose reads [SESSION|CHECKPOINT] [PATH...]. dash is how many arguments stand before
// "--", or -1. A file that is there counts before the begin of an ID.
func (w *workspace) choose(args []string, dash int) (t *undo.Target, paths []string, err error) {
	name := ""
	if len(args) > 0 && dash != 0 {
		_, none := undo.Choose(w.list, args[0])
		there := w.exists(args[0])
		if none == nil && (!there || undo.Whole(w.list, args[0])) || !there && !strings.ContainsAny(args[0], "/.") {
			name, args = args[0], args[1:]
			if name == "" {
				return nil, nil, verb.Usage("\"bawn checkpoints\" lists them", "%q names no session", name)
			}
		}
	}
	if t, err = undo.Choose(w.list, name); err != nil {
		return nil, nil, verb.Usage("\"bawn checkpoints\" lists what there is in this workspace; --cwd names another", "%w", err)
	}
	for _, a := range args {
		path, err := w.resolve(t, a)
		if err != nil {
			return nil, nil, err
		}
		paths = append(paths, path)
	}
	return t, paths, nil
}

func (w *workspace) exists(path string) bool {
	_, err := os.Lstat(w.absolute(path))
	return err == nil
}

func (w *workspace) absolute(path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(w.dir, path)
}

// resolve finds where a path leads, without its last name: that may be gone, or a
// link itself.
func (w *workspace) resolve(t *undo.Target, arg string) (string, error) {
	path := w.absolute(arg)
	rest := ""
	for at := path; ; at = filepath.Dir(at) {
		real, err := filepath.EvalSymlinks(filepath.Dir(at))
		if err == nil {
			path = filepath.Join(real, filepath.Base(at), rest)
			break
		}
		if at == "/" {
			break
		}
		rest = filepath.Join(filepath.Base(at), rest)
	}
	if !slices.ContainsFunc(t.To.Roots, func(r checkpoint.Root) bool { return fspath.Below(path, r.Top()) }) {
		return "", verb.Usage("name what lies below "+redact.Visible(t.To.Roots[0].Path), "%q is not part of the checkpoint", arg)
	}
	return path, nil
}

// show writes a path as it is shortest from the workspace.
func (w *workspace) show(path string) string { return undo.Show(w.path, path) }

// short is as much of an ID as is shown.
func short(id string) string { return id[:min(len(id), 8)] }

// title says which session, apply or checkpoint it is about.
func title(t *undo.Target) string {
	when := ago(time.Since(t.To.When))
	if t.To.Why == checkpoint.BeforeApply {
		return fmt.Sprintf("apply of copy %s, %s", redact.Visible(t.To.Copy), when)
	}
	if t.Session == "" || t.To.Why != checkpoint.AtStart {
		return fmt.Sprintf("checkpoint %s, %s", t.To.ID, when)
	}
	agent := ""
	if t.To.Agent != "" {
		agent = " of " + redact.Visible(t.To.Agent)
	}
	return fmt.Sprintf("session %s%s, %s", short(t.Session), agent, when)
}

// ago is a time that has gone by, roughly.
func ago(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds ago", int(max(d, 0).Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm ago", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh ago", int(d.Hours()))
	}
	return fmt.Sprintf("%dd ago", int(d.Hours()/24))
}

// complete completes IDs, the newest first, and then paths.
func complete(e *launch.Env, cwd *string) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		w, err := open(e, *cwd)
		if err != nil || len(args) > 0 {
			return nil, cobra.ShellCompDirectiveDefault
		}
		var ids []string
		for _, c := range slices.Backward(w.list) {
			if c.Why == checkpoint.AtStart && c.Session != "" {
				ids = append(ids, c.Session+"\tsession, "+ago(time.Since(c.When)))
			}
			ids = append(ids, c.ID+"\t"+whyWords[c.Why]+", "+ago(time.Since(c.When)))
		}
		return ids, cobra.ShellCompDirectiveDefault
	}
}

// whyWords say when a checkpoint was taken.
var whyWords = map[checkpoint.Why]string{
	checkpoint.AtStart: "start", checkpoint.AtEnd: "end", checkpoint.AtPrompt: "prompt", checkpoint.AtTime: "in between", checkpoint.Destruction: "before a command",
	checkpoint.BeforeUndo: "before an undo", checkpoint.BeforeApply: "before an apply", checkpoint.AtCopy: "start of a copy",
}

// addCwd adds the flag that names another workspace.
func addCwd(c *cobra.Command, cwd *string) {
	c.Flags().StringVarP(cwd, "cwd", "C", "", "`directory` of the workspace (default: the current one)")
	_ = c.MarkFlagDirname("cwd")
}
