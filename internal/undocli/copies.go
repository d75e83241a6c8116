package undocli

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/bawn-dev/bawn/internal/checkpoint"
	"github.com/bawn-dev/bawn/internal/copies"
	"github.com/bawn-dev/bawn/internal/launch"
	"github.com/bawn-dev/bawn/internal/redact"
	"github.com/bawn-dev/bawn/internal/settings"
	"github.com/bawn-dev/bawn/internal/undo"
	"github.com/bawn-dev/bawn/internal/verb"
)

// copyNamed finds the copy that the first argument names, in any workspace; nil where it
// names none.
func (w *workspace) copyNamed(args []string, dash int) (*copies.Record, error) {
	if len(args) == 0 || dash == 0 {
		return nil, nil
	}
	all, err := copies.List(w.state, w.path)
	if err != nil {
		return nil, internal(err)
	}
	switch found := copies.Find(all, args[0]); len(found) {
	case 0:
		return nil, nil
	case 1:
		return &found[0], nil
	default:
		return nil, verb.Usage("write more of the ID", "%q begins the IDs of %d copies", args[0], len(found))
	}
}

// chooseCopy reads [SESSION] [PATH...]. Without a name it is the only copy of the workspace.
func (w *workspace) chooseCopy(args []string, dash int) (r *copies.Record, paths []string, err error) {
	all, err := copies.List(w.state, w.path)
	if err != nil {
		return nil, nil, internal(err)
	}
	r, err = w.copyNamed(args, dash)
	switch {
	case err != nil:
		return nil, nil, err
	case r != nil:
		args = args[1:]
	case len(all) == 0:
		return nil, nil, verb.Usage("\"bawn run --copy -- COMMAND\" makes one; --cwd names another workspace", "no session has left a copy of %q", w.path)
	case len(args) > 0 && dash != 0 && !strings.ContainsAny(args[0], "/.") && !w.exists(args[0]) || len(all) > 1:
		return nil, nil, verb.Usage("there are: "+names(all), "want the name of a copy")
	default:
		r = &all[0]
	}
	for _, a := range args {
		path, err := w.resolve(&undo.Target{To: &checkpoint.Checkpoint{Roots: []checkpoint.Root{{Path: w.path}}}}, a)
		if err != nil {
			return nil, nil, err
		}
		paths = append(paths, path)
	}
	return r, paths, nil
}

// names lists copies for people.
func names(list []copies.Record) string {
	var words []string
	for i := range list {
		words = append(words, redact.Visible(list[i].Called()))
	}
	return strings.Join(words, ", ")
}

// reviewer opens copies.
func (w *workspace) reviewer(e *launch.Env) *copies.Reviewer { return reviewer(e, w.state, w.registry) }

// openCopy opens a copy to change it.
func (w *workspace) openCopy(e *launch.Env, r *copies.Record) (*copies.Review, error) {
	c, err := w.reviewer(e).Open(r.ID)
	if errors.Is(err, copies.ErrRunning) {
		return nil, verb.Usage("wait until it has ended, or end it: bawn kill "+short(r.ID), "copy %s: %w", r.Called(), err)
	}
	if err != nil {
		return nil, internal(err)
	}
	return c, nil
}

// CopyOf names the copy that a session works on, with the number of files that it has
// changed there; "-" for a session without one.
func CopyOf(e *launch.Env, session, name string) string {
	if name == "" {
		return "-"
	}
	name = redact.Visible(name)
	state, err := settings.StateDir(&e.World)
	if err != nil {
		return name
	}
	c, err := copies.Peek(state, session)
	if err != nil {
		return name + " (gone)" // discarded, or left without changes
	}
	n, _, err := c.Changed()
	if err != nil {
		return name
	}
	return fmt.Sprintf("%s (%d)", name, n)
}

// copyTitle says which copy it is about.
func copyTitle(r *copies.Record) string {
	agent := ""
	if r.Agent != "" {
		agent = " of " + redact.Visible(r.Agent)
	}
	return fmt.Sprintf("copy %s%s, %s, in %s", redact.Visible(r.Called()), agent, ago(time.Since(r.Started)), redact.Visible(r.Workspace))
}

// diffCopy compares a copy with what it was made from.
func (w *workspace) diffCopy(e *launch.Env, r *copies.Record, args []string) (*undo.Diff, error) {
	_, paths, err := w.chooseCopy(append([]string{r.ID}, args...), -1)
	if err != nil {
		return nil, err
	}
	c, err := w.reviewer(e).Look(r.ID)
	if err != nil {
		return nil, internal(err)
	}
	defer c.Close()
	d, err := c.Compare(paths)
	if err != nil {
		return nil, internal(err)
	}
	return d, nil
}
