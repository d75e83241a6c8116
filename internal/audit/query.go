package audit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/bawn-dev/bawn"
)

// An Entry is one record that was read back.
type Entry struct {
	Line  int    // from 1; 0 where records are read from the end or as they come
	Seq   uint64 // the record's number, from 1
	Event bawn.Event
	Raw   []byte // the record's line as it stands in the log, without newline
}

// A Filter chooses records. Its zero value chooses all events; each field that
// is set narrows it.
type Filter struct {
	Session  string        // exactly
	Agent    string        // exactly
	Kind     string        // exactly: a bawn.Kind's name, "session" or "audit"
	Verdict  *bawn.Verdict // what became of the action
	Resource string        // a glob with * (any text) and ? (any character), else a part of it
	Since    time.Time     // not before
	Until    time.Time     // before
	Limit    int           // as many at most; 0 is no limit
	// NewestFirst reads from the end, so that a limit takes the newest.
	NewestFirst bool
}

// Match reports whether the filter chooses e. It does not count.
func (f Filter) Match(e bawn.Event) bool {
	return (f.Session == "" || e.Session == f.Session) &&
		(f.Agent == "" || e.Agent == f.Agent) &&
		(f.Kind == "" || e.Kind == f.Kind) &&
		(f.Verdict == nil || e.Resolved == *f.Verdict) &&
		(f.Since.IsZero() || !e.Time.Before(f.Since)) &&
		(f.Until.IsZero() || e.Time.Before(f.Until)) &&
		matchResource(f.Resource, e.Resource)
}

func matchResource(pattern, resource string) bool {
	if strings.ContainsAny(pattern, "*?") {
		return glob(pattern, resource)
	}
	return strings.Contains(resource, pattern)
}

// glob matches without recursion: on a mismatch the last * takes one byte
// more, so it costs at most len(pattern) times len(text).
func glob(pattern, text string) bool {
	p, t, star, mark := 0, 0, -1, 0
	for t < len(text) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, mark = p, t
			p++
		case p < len(pattern) && (pattern[p] == '?' || pattern[p] == text[t]):
			t += width(pattern[p], text[t:])
			p++
		case star >= 0:
			mark++
			p, t = star+1, mark
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}

// width is how many bytes of text a pattern byte takes: ? takes a character.
func width(pattern byte, text string) int {
	if pattern != '?' {
		return 1
	}
	for i := range text {
		if i > 0 {
			return i
		}
	}
	return len(text)
}

// Query yields the records of the log in dir that f chooses, in the log's order
// or the newest first. A line that is broken is yielded as a *Fault and the
// reading goes on, so that one bad line hides no other; the caller may stop. It
// checks each record by itself, not the chain: that is Verify's work. A log
// that does not exist has no records.
func Query(dir string, f Filter) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		s, err := takeSnapshot(dir)
		if err != nil {
			yield(Entry{}, err)
			return
		}
		defer s.close()
		if s.log == nil {
			return
		}
		lines := forward(s.log, 0, s.size)
		if f.NewestFirst {
			lines = backward(s.log, s.size)
		}
		choose(lines, f, yield)
	}
}

// choose yields what f chooses of lines and reports whether it may go on.
func choose(lines iter.Seq2[line, error], f Filter, yield func(Entry, error) bool) {
	left := f.Limit
	for ln, err := range lines {
		if err != nil {
			yield(Entry{}, err)
			return
		}
		e, err := entry(ln)
		if err != nil {
			if !yield(Entry{Line: ln.number}, err) {
				return
			}
			continue
		}
		if !f.Match(e.Event) {
			continue
		}
		e.Raw = bytes.Clone(e.Raw)
		if !yield(e, nil) {
			return
		}
		if left--; left == 0 {
			return
		}
	}
}

// entry reads one line. The entry's Raw is good as long as the line's data.
func entry(ln line) (Entry, error) {
	fault := &Fault{Kind: Tampered, Line: ln.number, Offset: ln.offset, Want: "a whole record"}
	if !ln.whole {
		fault.Kind, fault.Got = Torn, fmt.Sprintf("a line of %d bytes cut short or too long", len(ln.data))
		return Entry{}, fault
	}
	rec, err := parseRecord(ln.data)
	if err != nil {
		fault.Got = err.Error()
		return Entry{}, fault
	}
	e := Entry{Line: ln.number, Seq: rec.seq, Raw: ln.data}
	if err := json.Unmarshal(rec.event, &e.Event); err != nil {
		fault.Got = fmt.Sprintf("an event that can't be read (%v)", err)
		return Entry{}, fault
	}
	return e, nil
}
