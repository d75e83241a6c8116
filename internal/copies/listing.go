package copies

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path"
	"strings"

	"github.com/bawn-dev/bawn/internal/checkpoint"
	"github.com/bawn-dev/bawn/internal/undo"
)

// A File is one name that a session has changed on its copy. What no checkpoint holds has
// neither Old nor New.
type File struct {
	checkpoint.Difference
	ID    string // of this name with exactly this content
	Held  string // why it is held back, or ""
	Stays string // why nothing can take it over, or ""
}

// A Listing is all that a session has changed on its copy. Close ends it.
type Listing struct {
	*undo.Diff
	Files  []File // what is held back first, and then what can't be taken over
	Digest string // of all of this, with the contents
}

// Listing lists what the session has changed on its copy, for a human.
func (r *Review) Listing() (*Listing, error) {
	l := &Listing{}
	come := map[string]string{} // what an apply would take over, by path
	var err error
	l.Diff, err = r.compare(nil, func(s *checkpoint.Store, base *checkpoint.Checkpoint) (*checkpoint.Checkpoint, error) {
		filtered, left, err := r.Merge(s, base, nil)
		if err != nil {
			return nil, err
		}
		r.Left = left
		list, err := s.Compare(base, filtered, nil)
		if err != nil {
			return nil, err
		}
		for _, x := range list {
			come[x.Path] = undo.Fingerprint(x)
		}
		return r.MergeAll(s, base)
	})
	if err != nil {
		return nil, err
	}
	l.fill(r, come)
	return l, nil
}

// fill sorts the files and sums them up.
func (l *Listing) fill(r *Review, come map[string]string) {
	left := map[string]checkpoint.Leaving{}
	for _, x := range r.Left {
		left[r.Workspace+"/"+x.Path] = x
	}
	var held, stays, rest []File
	sum := sha256.New()
	for _, x := range l.List() {
		f := File{Difference: x, ID: undo.Fingerprint(x)}
		why, found := nearest(left, x.Path)
		switch {
		case come[x.Path] == f.ID:
			rest = append(rest, f)
		case found && why.Held:
			f.Held = why.Why
			held = append(held, f)
		case found:
			f.Stays = why.Why
			stays = append(stays, f)
		case x.Old != nil || x.New.Kind != checkpoint.Directory: // else it would be made for what is held back in it
			f.Stays = "it is a part of what stays"
			stays = append(stays, f)
		}
		fmt.Fprintf(sum, "%s %q %q\n", f.ID, f.Held, f.Stays)
		delete(left, x.Path)
	}
	for _, x := range r.Stays(nil) {
		at := r.Workspace + "/" + x.Path
		if _, alone := left[at]; !alone {
			continue
		}
		f := File{Difference: checkpoint.Difference{Path: at}, ID: undo.Fingerprint(checkpoint.Difference{Path: at}), Stays: x.Why}
		stays = append(stays, f)
		fmt.Fprintf(sum, "%s %q %q\n", f.ID, f.Held, f.Stays)
	}
	l.Files = append(append(held, stays...), rest...)
	l.Digest = hex.EncodeToString(sum.Sum(nil))
}

// nearest returns what is said of a path, or of the closest directory above it.
func nearest(left map[string]checkpoint.Leaving, at string) (checkpoint.Leaving, bool) {
	for ; strings.Count(at, "/") > 1; at = path.Dir(at) {
		if x, ok := left[at]; ok {
			return x, true
		}
	}
	return checkpoint.Leaving{}, false
}
