package doctor

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/egress/remote"
	"github.com/bawn-dev/bawn/internal/sandbox"
)

// A Subject is a provider to be asked what it enforces here.
type Subject struct {
	Name string
	// Ask tries it. It may take its time, or never return.
	Ask func() []bawn.Capability
	// Unsandboxed says that it is no sandbox.
	Unsandboxed bool
}

// A Column is what one provider enforces: a capability for every attribute.
type Column struct {
	Provider     string            `json:"provider"`
	Unsandboxed  bool              `json:"noSandbox,omitempty"`
	Took         time.Duration     `json:"-"`
	Capabilities []bawn.Capability `json:"capabilities"`
}

// Meets reports whether the provider enforces every attribute, limits at least
// in part: then it is taken where none is named.
func (c Column) Meets(attributes []string) bool {
	return !c.Unsandboxed && !slices.ContainsFunc(attributes, func(a string) bool {
		have := c.Of(a)
		return have.Strength == bawn.Unenforced || have.Strength == bawn.Partly && !sandbox.IsLimit(a)
	})
}

// Offers reports whether the provider is a sandbox that enforces every attribute
// at least in part. A session that names it gets it.
func (c Column) Offers(attributes []string) bool {
	return !c.Unsandboxed && !slices.ContainsFunc(attributes, func(a string) bool { return c.Of(a).Strength == bawn.Unenforced })
}

// Of returns the capability for an attribute.
func (c Column) Of(attribute string) bawn.Capability {
	i := slices.IndexFunc(c.Capabilities, func(n bawn.Capability) bool { return n.Attribute == attribute })
	if i < 0 {
		return bawn.Capability{Attribute: attribute, Why: "this provider does not know it"}
	}
	return c.Capabilities[i]
}

// Survey asks all subjects at once, and waits no longer than bound for any of
// them. waiting is called, from one goroutine, with those that are still
// missing.
func Survey(subjects []Subject, bound time.Duration, waiting func(names []string)) []Column {
	columns := make([]Column, len(subjects))
	answered := make(chan int, len(subjects))
	var mu sync.Mutex // guards columns while somebody may be late
	for i, s := range subjects {
		columns[i] = late(s, bound)
		go func() {
			began := time.Now()
			column := complete(s, s.Ask())
			column.Took = time.Since(began)
			mu.Lock()
			defer mu.Unlock()
			columns[i] = column
			answered <- i
		}()
	}
	left := map[int]bool{}
	for i := range subjects {
		left[i] = true
	}
	over := time.After(bound)
	for len(left) > 0 {
		waiting(names(subjects, left))
		select {
		case i := <-answered:
			delete(left, i)
		case <-over:
			clear(left)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	return slices.Clone(columns)
}

func names(subjects []Subject, of map[int]bool) []string {
	var list []string
	for i, s := range subjects {
		if of[i] {
			list = append(list, s.Name)
		}
	}
	return list
}

// complete has every attribute, in order. With every provider a network by name
// needs the program that serves it.
func complete(s Subject, have []bawn.Capability) Column {
	given := Column{Capabilities: relayed(slices.Clone(have), remote.FindEgress)}
	c := Column{Provider: s.Name, Unsandboxed: s.Unsandboxed}
	for _, a := range sandbox.Attributes() {
		c.Capabilities = append(c.Capabilities, given.Of(a))
	}
	return c
}

// late is the column of who does not answer.
func late(s Subject, bound time.Duration) Column {
	return Column{Provider: s.Name, Unsandboxed: s.Unsandboxed, Took: bound, Capabilities: Nothing(fmt.Sprintf("it has not answered within %v", bound), hangs)}
}
