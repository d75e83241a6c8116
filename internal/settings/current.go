package settings

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/atomicfile"
	"github.com/bawn-dev/bawn/internal/policy"
	"github.com/bawn-dev/bawn/internal/verb"
)

// settling is how long a rule that forbids or asks still holds after it has gone from its
// file: an editor may write a file in two steps.
const settling = 2 * time.Second

// A CurrentRules has the rules that people have written, as they are now: a running
// session obeys added rules. A file that can't be read changes nothing. The project's
// rules of the start hold to the session's end, since a project may only tighten.
type CurrentRules struct {
	world     *verb.World
	workspace string
	files     []PolicySource
	more      []bawn.Rule // besides the files
	note      func(string)
	now       func() time.Time

	mu      sync.Mutex
	stamps  []atomicfile.Stamp // of files, when they were read last
	inForce []bawn.Rule        // the answer
	read    []bawn.Rule        // what the files said
	project []bawn.Rule        // the project's file at the start
	held    []bawn.Rule        // denials of the files when they were last settled
	changed time.Time          // when the files changed last, if they are not settled
	told    string             // the last mistake that the user was told of
}

// NewCurrentRules returns the rules of a workspace, together with more. note tells the user of
// a file that can't be read any more; nil drops it.
func NewCurrentRules(w *verb.World, workspace string, note func(string), more ...bawn.Rule) *CurrentRules {
	if note == nil {
		note = func(string) {}
	}
	return &CurrentRules{world: w, workspace: workspace, files: PolicyFiles(w, workspace), more: more, note: note, now: time.Now}
}

// Written returns the rules in force except those made by answers. As long as nothing
// changes, that is the same slice. It errs if the files could not be read when it was
// called first.
func (c *CurrentRules) Written() ([]bawn.Rule, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	stamps := stampsOf(c.files)
	switch {
	case c.stamps == nil:
		return c.first(stamps)
	case !slices.Equal(stamps, c.stamps):
		c.again(stamps)
	case !c.changed.IsZero() && c.settled():
		c.changed = time.Time{}
		c.inForce = c.with(c.read, nil)
	}
	return c.inForce, nil
}

// settled reports whether the files have been as they are for a while.
func (c *CurrentRules) settled() bool { return c.now().Sub(c.changed) >= settling }

// Settling reports whether Written returns something else soon, without a change of the
// files.
func (c *CurrentRules) Settling() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.changed.IsZero()
}

// first reads the files as LoadRules does.
func (c *CurrentRules) first(stamps []atomicfile.Stamp) ([]bawn.Rule, error) {
	if err := HomeAndWorkspace(c.world, c.workspace); err != nil {
		return nil, err
	}
	read, err := ReadRules(c.files)
	if err != nil {
		return nil, err
	}
	c.stamps, c.read = stamps, read
	for _, r := range read {
		if r.Source == bawn.Project {
			c.project = append(c.project, r)
		}
	}
	c.inForce = c.with(read, nil)
	return c.inForce, nil
}

// again reads files that have changed. Denials that they no longer contain hold
// until they are settled.
func (c *CurrentRules) again(stamps []atomicfile.Stamp) {
	read, err := ReadRules(c.files)
	if err == nil {
		_, err = NewPolicy(c.with(read, nil), policy.Options{})
	}
	c.stamps = stamps
	if err != nil {
		if text := err.Error(); text != c.told {
			c.told = text
			c.note("the rules that the session has had stay in force, since a file of rules can't be read: " + strings.ReplaceAll(text, "\n", "; "))
		}
		return
	}
	if c.settled() {
		c.held = tightening(c.read)
	}
	c.told, c.changed, c.read = "", c.now(), read
	c.inForce = c.with(read, c.held)
}

// with adds to rules of files what holds besides, each once.
func (c *CurrentRules) with(read, before []bawn.Rule) []bawn.Rule {
	all := slices.Concat(read, c.more, c.project, before)
	seen := make(map[string]bool, len(all))
	return slices.DeleteFunc(all, func(r bawn.Rule) bool {
		r.ID = "" // where it stands in its file
		key := fmt.Sprintf("%+v", r)
		had := seen[key]
		seen[key] = true
		return had
	})
}

// tightening are those rules that don't allow.
func tightening(rules []bawn.Rule) []bawn.Rule {
	return slices.DeleteFunc(slices.Clone(rules), func(r bawn.Rule) bool { return r.Verdict == bawn.Allow })
}

// stampsOf returns what tells the files' content apart from a later one.
func stampsOf(files []PolicySource) []atomicfile.Stamp {
	stamps := make([]atomicfile.Stamp, len(files))
	for i, f := range files {
		stamps[i] = atomicfile.StampOf(f.Path)
	}
	return stamps
}
