package dockerapi

import (
	"regexp"
	"sync"
)

// form compiles an expression when it is used first: nearly every bawnd that
// starts has no containers, and all forms together cost it a millisecond.
func form(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}
