package sdk

import (
	"errors"
	"iter"
	"os"
	"path/filepath"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/audit"
	"github.com/bawn-dev/bawn/internal/places"
)

// A Log is what Bawn has recorded, in a directory. The zero Log is an error to read.
type Log struct{ Dir string }

// UserLog is the log of the user whose process this is.
func UserLog() (Log, error) {
	dir, err := places.State(os.Getenv) //nolint:forbidigo // the caller asks for the log of its own user
	return Log{filepath.Join(dir, "audit")}, err
}

var errNoLog = errors.New("the log has no directory; want one, or UserLog")

// Events yields the log's events, the oldest first; of one session unless that is "". A
// record that can't be read is yielded as an error, and the reading goes on. It looks at
// each record by itself: whether some are missing says Verify.
func (l Log) Events(session string) iter.Seq2[bawn.Event, error] {
	return func(yield func(bawn.Event, error) bool) {
		if l.Dir == "" {
			yield(bawn.Event{}, errNoLog)
			return
		}
		for e, err := range audit.Query(l.Dir, audit.Filter{Session: session}) {
			if !yield(e.Event, err) {
				return
			}
		}
	}
}

// Verify checks each record and that none is missing, changed or added, and returns how
// many are in order. An error says what is wrong first. A directory without a log has none.
func (l Log) Verify() (records uint64, err error) {
	if l.Dir == "" {
		return 0, errNoLog
	}
	r, err := audit.Verify(l.Dir)
	if err == nil && r.Fault != nil {
		err = r.Fault
	}
	return r.Records, err
}
