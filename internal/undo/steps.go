package undo

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/bawn-dev/bawn/internal/checkpoint"
	"github.com/bawn-dev/bawn/internal/gitstore"
	"github.com/bawn-dev/bawn/internal/redact"
)

// A Step is one thing that an undo does, or leaves as it is, in words. Its texts are
// those of files and refs: they are escaped by the caller.
type Step struct {
	What   string // "put back", "keep", …
	Path   string // absolute; "" where it is about Ref
	Ref    string
	Detail string
}

var opWords = map[checkpoint.Op]string{
	checkpoint.Create: "put back", checkpoint.Replace: "restore", checkpoint.Remove: "remove", checkpoint.Mode: "set the mode of", checkpoint.Merged: "merge", checkpoint.Kept: "keep", checkpoint.Aside: "rename",
}

// Steps lists what Apply does, and what stays as the human has changed it.
func (p *Plan) Steps() (do, keep []Step) {
	for _, c := range p.Files.Changes {
		s := Step{What: cmp.Or(opWords[c.Op], string(c.Op)), Path: c.Path}
		if c.Op == checkpoint.Aside {
			s.Detail = "to " + c.Why
		}
		do = append(do, s)
	}
	for _, c := range p.Files.Kept {
		keep = append(keep, Step{What: opWords[checkpoint.Kept], Path: c.Path, Detail: c.Why})
	}
	for _, c := range p.Git {
		if c.Conflict {
			keep = append(keep, Step{What: opWords[checkpoint.Kept], Ref: c.Name, Detail: c.Why})
		} else {
			do = append(do, gitStep(c))
		}
	}
	return do, keep
}

func gitStep(c gitstore.RefChange) Step {
	return Step{What: "git", Ref: c.Name, Detail: value(c.From) + " to " + value(c.To)}
}

// value is that of a ref, short.
func value(s string) string {
	switch {
	case s == "":
		return "nothing"
	case len(s) >= 40 && !strings.Contains(s, " "):
		return s[:10]
	}
	return s
}

// Digest identifies what the plan does and keeps, so that a yes counts for nothing
// else.
func (p *Plan) Digest() (string, error) {
	after := ""
	if p.After != nil {
		after = p.After.ID
	}
	var contents []string
	for _, c := range slices.Concat(p.Files.Changes, p.Files.Kept) {
		contents = append(contents, Fingerprint(c.Sides()))
	}
	text, err := json.Marshal(struct {
		To, After     string
		Changes, Kept []checkpoint.Change
		Contents      []string
		Git           []gitstore.RefChange
	}{p.To.ID, after, stable(p.Files.Changes), p.Files.Kept, contents, p.Git})
	if err != nil {
		return "", fmt.Errorf("BUG(bawn): a plan can't be written: %w", err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}

// Fingerprint identifies a difference with the contents of both sides. Of directories it
// is owner and mode alone; times do not count.
func Fingerprint(d checkpoint.Difference) string {
	sum := sha256.New()
	fmt.Fprintf(sum, "%q", d.Path)
	for _, e := range []*checkpoint.Entry{d.Old, d.New} {
		if e == nil {
			fmt.Fprint(sum, " nothing")
			continue
		}
		object := e.Object
		if e.Kind == checkpoint.Directory {
			object = checkpoint.Digest{}
		}
		fmt.Fprintf(sum, " %d %o %d %d %x %x", e.Kind, e.Mode, e.UID, e.GID, object, e.Attrs)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// stable leaves out the names that are made anew for each plan.
func stable(list []checkpoint.Change) []checkpoint.Change {
	var out []checkpoint.Change
	for _, c := range list {
		if c.Op == checkpoint.Aside {
			c.Why = ""
		}
		out = append(out, c)
	}
	return out
}

// Done counts what Apply has done: done files, and the refs where err is nil.
func (p *Plan) Done(done int, err error) int {
	for _, c := range p.Git {
		if !c.Conflict && err == nil {
			done++
		}
	}
	return done
}

// Show writes a path as it is shortest from the workspace, and fit to be shown.
func Show(workspace, path string) string {
	if rel, ok := strings.CutPrefix(path, strings.TrimSuffix(workspace, "/")+"/"); ok {
		path = rel
	}
	return redact.Visible(path)
}
