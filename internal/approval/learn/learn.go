// Package learn remembers how a human answered, by the shape of the question,
// and says how sure it is of the next answer. Only a human's answers count; the
// policy decides which may be remembered.
package learn

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/atomicfile"
	"github.com/bawn-dev/bawn/internal/strictjson"
)

// Answers keep their weight while shapes are met again within Grace; after it
// they lose half of it in each HalfLife.
const (
	Grace    = 30 * 24 * time.Hour
	HalfLife = 60 * 24 * time.Hour
)

// MaxShapes bounds the remembered shapes; those answered longest ago are
// dropped.
const MaxShapes = 5000

// A Lesson has the answers to one shape.
type Lesson struct {
	Shape string    `json:"shape"`
	Allow float64   `json:"allow"`           // answers "yes", as they counted at Last
	Deny  float64   `json:"deny"`            // answers "no"
	Fixed string    `json:"fixed,omitempty"` // "allow" for always, "deny" for never
	Last  time.Time `json:"last"`
}

// Confidence returns the likelier verdict and how sure it is at a time:
// (same+1)/(all+2), where answers lose their weight with age.
func (l Lesson) Confidence(now time.Time) (bawn.Verdict, float64) {
	switch l.Fixed {
	case "allow":
		return bawn.Allow, 1
	case "deny":
		return bawn.Deny, 1
	}
	yes, no := l.weighed(now)
	if yes > no {
		return bawn.Allow, (yes + 1) / (yes + no + 2)
	}
	return bawn.Deny, (no + 1) / (yes + no + 2)
}

// weighed lets the answers age.
func (l Lesson) weighed(now time.Time) (yes, no float64) {
	age := max(now.Sub(l.Last)-Grace, 0)
	w := math.Exp2(-float64(age) / float64(HalfLife))
	return l.Allow * w, l.Deny * w
}

// A Store holds lessons. It is safe for concurrent use.
type Store struct {
	mu      sync.Mutex
	path    string
	now     func() time.Time
	lessons map[string]Lesson
}

// Open reads a store; a missing file is an empty one. A file that can't be
// understood is an error and stays as it is.
func Open(path string, now func() time.Time) (*Store, error) {
	s := &Store{path: path, now: now, lessons: map[string]Lesson{}}
	data, err := atomicfile.Read(path, maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read what was learned: %w", err)
	}
	if err := s.load(data); err != nil {
		return nil, fmt.Errorf("%s: %w; move the file away to start anew", path, err)
	}
	return s, nil
}

// maxFile is the largest store that is read, in bytes.
const maxFile = 16 << 20

// load reads all lessons of a file, or returns an error.
func (s *Store) load(data []byte) error {
	var list []Lesson
	if err := strictjson.Decode(data, &list); err != nil {
		return err
	}
	for _, l := range list {
		if err := l.check(); err != nil {
			return err
		}
		if _, twice := s.lessons[l.Shape]; twice {
			return fmt.Errorf("the lesson %q is there twice", l.Shape)
		}
		s.lessons[l.Shape] = l
	}
	return nil
}

func (l Lesson) check() error {
	bad := l.Shape == "" || strings.ContainsFunc(l.Shape, func(c rune) bool { return c < ' ' || c == 0x7f }) || l.Allow < 0 || l.Deny < 0 || math.IsNaN(l.Allow+l.Deny) || math.IsInf(l.Allow+l.Deny, 0) ||
		l.Fixed != "" && l.Fixed != "allow" && l.Fixed != "deny"
	if bad {
		return fmt.Errorf("the lesson %q is not one that was written here", l.Shape)
	}
	return nil
}

// Answer remembers what a human said about shapes. An answer by nobody, a
// question, and an answer for one session teach nothing.
func (s *Store) Answer(shapes []string, a bawn.Answer) error {
	if a.By == "" || a.Verdict == bawn.Ask || a.Verdict > bawn.Allow || a.Scope == bawn.ForSession || len(shapes) == 0 {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	before := maps.Clone(s.lessons)
	for _, shape := range shapes {
		s.lessons[shape] = s.lessons[shape].after(shape, a, s.now())
	}
	s.bound()
	if err := s.write(); err != nil {
		s.lessons = before
		return err
	}
	return nil
}

// after is a lesson with one more answer.
func (l Lesson) after(shape string, a bawn.Answer, now time.Time) Lesson {
	yes, no := l.weighed(now)
	l = Lesson{Shape: shape, Allow: yes, Deny: no, Fixed: l.Fixed, Last: now}
	switch {
	case a.Scope == bawn.Always:
		l.Fixed = a.Verdict.String()
	case l.Fixed != "" && l.Fixed != a.Verdict.String():
		l.Fixed = "" // a human who says otherwise has changed their mind
	}
	if a.Verdict == bawn.Allow {
		l.Allow++
	} else {
		l.Deny++
	}
	return l
}

// bound forgets the oldest lessons when there are too many.
func (s *Store) bound() {
	for len(s.lessons) > MaxShapes {
		oldest := slices.MinFunc(slices.Collect(maps.Values(s.lessons)), func(a, b Lesson) int { return a.Last.Compare(b.Last) })
		delete(s.lessons, oldest.Shape)
	}
}

// write replaces the file as a whole.
func (s *Store) write() error {
	data, err := json.MarshalIndent(s.list(), "", " ")
	if err == nil {
		err = atomicfile.Write(s.path, append(data, '\n'), 0o600)
	}
	if err != nil {
		return fmt.Errorf("write what was learned: %w", err)
	}
	return nil
}

// Recall returns the likelier verdict on a shape and how sure it is.
func (s *Store) Recall(shape string) (bawn.Verdict, float64, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l, ok := s.lessons[shape]
	if !ok {
		return bawn.Deny, 0, false
	}
	v, sure := l.Confidence(s.now())
	return v, sure, true
}

// Lessons lists everything, by shape.
func (s *Store) Lessons() []Lesson {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.list()
}

func (s *Store) list() []Lesson {
	return slices.SortedFunc(maps.Values(s.lessons), func(a, b Lesson) int { return strings.Compare(a.Shape, b.Shape) })
}

// Forget drops the lessons whose shapes begin with a text, and says how many
// those were. The empty text is every shape's beginning.
func (s *Store) Forget(prefix string) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, n := maps.Clone(s.lessons), 0
	for shape := range before {
		if strings.HasPrefix(shape, prefix) {
			delete(s.lessons, shape)
			n++
		}
	}
	if n == 0 {
		return 0, nil
	}
	if err := s.write(); err != nil {
		s.lessons = before
		return 0, err
	}
	return n, nil
}
