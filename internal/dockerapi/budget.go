package dockerapi

import (
	"math/bits"
	"sync"

	"github.com/bawn-dev/bawn"
)

// A share is what one container, or all of them, may use.
type share struct {
	memory int64 // bytes
	nano   int64 // billionths of a processor
	pids   int64
}

const (
	// leastParts is the number of equal parts of what no running container has
	// asked for, while at most so many have no limit of their own. With more of
	// them the number of parts doubles.
	leastParts = 4
	billion    = 1_000_000_000
	// maxContainers bounds containers that exist at a time.
	maxContainers = 64
	// What a session that states no limit gives to all of its containers.
	unstatedMemory = 8 << 30
	unstatedPIDs   = 8192
)

// A dimension is one number of a share.
type dimension struct {
	name, unit string
	per        int64 // of the unit in messages
	least      int64 // what is of use
	of         func(*share) *int64
}

var dimensions = []dimension{
	{"memory", "MiB", 1 << 20, 6 << 20, func(s *share) *int64 { return &s.memory }}, // what engines accept
	{"processes", "", 1, 4, func(s *share) *int64 { return &s.pids }},
	{"processors", "thousandths", billion / 1000, 10_000_000, func(s *share) *int64 { return &s.nano }},
}

// A budget divides what a session may use among its containers that run.
type budget struct {
	total share // 0 processors: no bound

	granting sync.Mutex // held while the engine is told of new shares

	mu      sync.Mutex
	running map[*child]bool // true once the engine has started it
	count   int             // containers that exist
}

// newBudget returns the budget of a session with these limits.
func newBudget(r bawn.Resources) *budget {
	t := share{memory: r.MemoryMB << 20, pids: r.PIDs, nano: int64(r.CPUs * billion)}
	if t.memory <= 0 {
		t.memory = unstatedMemory
	}
	if t.pids <= 0 {
		t.pids = unstatedPIDs
	}
	return &budget{total: t, running: map[*child]bool{}}
}

// admit counts a container that will exist. Its share is what it would have if
// it were started now, or if nothing else ran.
func (b *budget) admit(c *child) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.count >= maxContainers {
		return refuse(RuleLimit, "remove some", "%d containers of this session exist", b.count)
	}
	got, _, err := b.divide(c)
	if err != nil {
		got, _, err = (&budget{total: b.total}).divide(c)
	}
	if err != nil {
		return err
	}
	b.count++
	c.admitted, c.share = true, got
	return nil
}

// dismiss takes back what admit and begin gave.
func (b *budget) dismiss(c *child) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.running, c)
	if c.admitted {
		c.admitted = false
		b.count--
	}
}

// end takes back what begin gave.
func (b *budget) end(c *child) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.running, c)
}

// started says that the engine runs c.
func (b *budget) started(c *child) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, ok := b.running[c]; ok {
		b.running[c] = true
	}
}

// ran lists the containers that the engine has started and whose end is not
// known.
func (b *budget) ran() (list []*child) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for c, started := range b.running {
		if started {
			list = append(list, c)
		}
	}
	return list
}

// of is the share that c has.
func (b *budget) of(c *child) share {
	b.mu.Lock()
	defer b.mu.Unlock()
	return c.share
}

// set notes that the engine has given c a share.
func (b *budget) set(c *child, s share) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c.share = s
}

// begin notes that c will run, with the share that it has.
func (b *budget) begin(c *child) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.running[c] = false
}

// plan says what c gets, and what is left for the others that run and have more
// now.
func (b *budget) plan(c *child) (own share, others map[*child]share, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	own, parts, err := b.divide(c)
	if err != nil {
		return share{}, nil, err
	}
	others = map[*child]share{}
	for other := range b.running {
		s := other.share
		for _, d := range dimensions {
			if part := *d.of(&parts); part > 0 && *d.of(&other.wanted.share) == 0 {
				*d.of(&s) = min(*d.of(&s), part)
			}
		}
		if other != c && s != other.share {
			others[other] = s
		}
	}
	return own, others, nil
}

// divide says what c gets beside those that run, and the equal parts for
// containers without limits of their own. It needs b.mu.
func (b *budget) divide(c *child) (own, parts share, err error) {
	for _, d := range dimensions {
		asked := *d.of(&c.wanted.share)
		*d.of(&own) = asked
		if *d.of(&b.total) == 0 {
			continue
		}
		part, err := b.part(d, c)
		if err != nil {
			return share{}, share{}, err
		}
		*d.of(&parts) = part
		if asked == 0 {
			*d.of(&own) = part
		}
	}
	return own, parts, nil
}

// part is the equal part of one dimension that each container without a limit
// of its own gets, c among those that run; 0 where all have limits.
func (b *budget) part(d dimension, c *child) (int64, error) {
	left, without := *d.of(&b.total), 0
	count := func(one *child) {
		asked := *d.of(&one.wanted.share)
		if left -= asked; asked == 0 {
			without++
		}
	}
	count(c)
	for other := range b.running {
		if other != c {
			count(other)
		}
	}
	part := int64(0)
	if without > 0 {
		part = left / int64(max(leastParts, 1<<bits.Len(uint(without-1))))
	}
	if left < 0 || without > 0 && part < d.least {
		return 0, refuse(RuleLimit, "ask for less, stop other containers, or raise the session's limit (--memory, --pids, --cpus)",
			"of the session's %s %s of %s the containers would leave %s for %d that ask for no limit: too little",
			number(*d.of(&b.total)/d.per), d.unit, d.name, number(left/d.per), without)
	}
	return part, nil
}
