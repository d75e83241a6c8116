package policy

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/bawn-dev/bawn"
)

// A Policy decides. It is safe for concurrent use and never changes; a new
// generation is a new Policy.
type Policy struct {
	rules []*rule // besides the built-in ones
	table *table
	known func() *knowledge // what only commands and paths are judged by
	// opensHosts says that a rule of a person lets a host through.
	opensHosts bool
	// holds says that a rule of a person denies a command or asks about one.
	holds   bool
	memory  Memory
	resolve func(string) string
	cache   cache
}

// A Memory is what earlier answers of the human have taught.
type Memory interface {
	// Recall returns the learned verdict on a shape, how sure it is from 0 to 1,
	// and whether there is one.
	Recall(shape string) (bawn.Verdict, float64, bool)
}

// Options are the parts of a policy besides its rules.
type Options struct {
	// Resolve returns where a path leads when links are followed. Both the path
	// and where it leads are judged. It makes decisions depend on the disk, so
	// they are not cached.
	Resolve func(string) string
	Memory  Memory
}

// New compiles rules on top of the built-in ones. A rule is refused if it can't
// be read, fails its own example, or allows in a source that may only narrow.
// All wrong rules are reported, and then there is no policy.
func New(rules []bawn.Rule, o Options) (*Policy, error) {
	p := &Policy{known: builtin, memory: o.Memory, resolve: o.Resolve}
	var wrong []string
	for _, r := range rules {
		c, err := compile(r)
		if err == nil {
			err = c.check()
		}
		if err != nil {
			wrong = append(wrong, err.Error())
			continue
		}
		p.rules = append(p.rules, c)
	}
	if len(wrong) > 0 {
		return nil, fmt.Errorf("%s", strings.Join(wrong, "\n"))
	}
	p.table = newTable(append(compiledBuiltins(), p.rules...))
	p.opensHosts = slices.ContainsFunc(p.rules, func(r *rule) bool { return r.Kind == bawn.Network && r.Verdict == bawn.Allow })
	p.holds = slices.ContainsFunc(p.rules, func(r *rule) bool { return r.Kind == bawn.Command && r.Verdict != bawn.Allow })
	return p, nil
}

// Held returns what a person's rule says about the command of a question, if it
// denies or asks. Built-in rules and the mode do not matter.
func (p *Policy) Held(q *Question) (bawn.Decision, bool) {
	if !p.holds || q.Action.Kind != bawn.Command {
		return bawn.Decision{}, false
	}
	d := p.Decide(q)
	return d, d.Verdict != bawn.Allow && d.Source != bawn.Builtin
}

// Rules lists the rules in the order in which they win.
func (p *Policy) Rules() []bawn.Rule {
	out := Builtins()
	for _, r := range p.rules {
		out = append(out, r.Rule)
	}
	slices.SortStableFunc(out, func(a, b bawn.Rule) int { return b.Priority - a.Priority })
	return out
}

// Decide answers a question. It asks nobody, records nothing and never fails:
// it denies what it can't judge.
func (p *Policy) Decide(q *Question) bawn.Decision {
	if !q.Action.Valid() {
		return bawn.Denied("the action names no kind, operation or resource", "builtin:invalid-action")
	}
	if p.resolve != nil || p.memory != nil || slices.ContainsFunc(q.Action.Args, hasNUL) {
		return p.decide(q)
	}
	k := q.key()
	if d, ok := p.cache.get(&k); ok {
		return d
	}
	d := p.decide(q)
	p.cache.put(&k, d)
	return d
}

func hasNUL(s string) bool { return strings.IndexByte(s, 0) >= 0 }

func (p *Policy) decide(q *Question) bawn.Decision {
	switch q.Action.Kind {
	case bawn.Command:
		return p.decideCommand(q)
	case bawn.Filesystem:
		return p.decidePath(q)
	case bawn.Network:
		return p.decideHost(q)
	}
	return p.decideTool(q)
}

// maxCached bounds the cache; it starts anew when it is full.
const maxCached = 4096

// A cache holds decisions of one policy by their question. It never holds an
// approval: a human's answer is not part of a policy's decision.
type cache struct {
	mu      sync.RWMutex
	entries map[key]*bawn.Decision
}

func (c *cache) get(k *key) (bawn.Decision, bool) {
	c.mu.RLock()
	d := c.entries[*k]
	c.mu.RUnlock()
	if d == nil {
		return bawn.Decision{}, false
	}
	return *d, true
}

func (c *cache) put(k *key, d bawn.Decision) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.entries == nil || len(c.entries) >= maxCached {
		c.entries = make(map[key]*bawn.Decision, 64)
	}
	c.entries[*k] = &d
}
