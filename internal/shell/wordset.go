package shell

import (
	"strings"
	"sync"
)

// A WordSet is a set of words, made when it is first asked: most runs of a
// program that knows them ask for none.
type WordSet struct {
	text string
	once sync.Once
	m    map[string]bool
}

// NewWordSet is the set of the words of a text, which white space separates.
func NewWordSet(words string) *WordSet { return &WordSet{text: words} }

// Has reports whether a word is in the set.
func (s *WordSet) Has(word string) bool {
	s.once.Do(func() {
		s.m = map[string]bool{}
		for w := range strings.FieldsSeq(s.text) {
			s.m[w] = true
		}
	})
	return s.m[word]
}
