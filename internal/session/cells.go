package session

import (
	"cmp"
	"slices"

	"github.com/bawn-dev/bawn/internal/netrule"
)

// Entries about one host change each other's meaning: an HTTP entry takes away
// the grant of a Hosts entry, and hosts that no entry names may still be asked
// about. So lists can't be met one by one. Names that entries speak of nest or
// are disjoint; that cuts the hosts into cells in which every list says one
// thing. The meet is found cell by cell, and said cell by cell with
// Egress.Closed, which stops wider entries from speaking there.

// A saying is the statement of a session's entries about one cell. The zero
// saying is nothing: the policy decides, and may ask.
type saying struct {
	closed bool // nothing is permitted, and nobody asked
	host   bool
	http   []netrule.HTTP
	git    []netrule.Git
}

var denied = saying{closed: true}

func (s saying) silent() bool { return !s.closed && !s.host && len(s.http)+len(s.git) == 0 }

// opaque sayings permit everything, and nothing is looked at.
func (s saying) opaque() bool { return s.host && len(s.http)+len(s.git) == 0 }

// of returns the entries' statement about a cell.
func (r reach) of(cell netrule.Host) saying {
	var s saying
	counts := func(h netrule.Host) bool {
		return h.Covers(cell) && !slices.ContainsFunc(r.closed, func(c netrule.Host) bool { return c.Covers(cell) && !c.CoversName(h) })
	}
	s.host = slices.ContainsFunc(r.hosts, counts)
	for _, e := range r.http {
		if counts(e.Host()) {
			s.http = append(s.http, e.On(cell))
		}
	}
	for _, e := range r.git {
		if counts(e.Host()) {
			s.git = append(s.git, e.On(cell))
		}
	}
	s.http, s.git = pruned(s.http), pruned(s.git)
	s.closed = s.silent() && slices.ContainsFunc(r.closed, func(c netrule.Host) bool { return c.Covers(cell) })
	return s
}

// meetSayings returns what both permit in a cell, or less where no entries say
// that.
func meetSayings(a, b saying) saying {
	switch {
	case a.closed || b.closed:
		return denied
	case a.silent() || b.silent():
		if (a.silent() || a.opaque()) && (b.silent() || b.opaque()) {
			return saying{}
		}
		return denied // one leaves to the policy what the other denies
	}
	http, limited := meetHTTP(a, b)
	git, spoken := meetGit(a, b)
	http, git = fitting(http, netrule.ParseHTTP), fitting(git, netrule.ParseGit)
	out := saying{host: a.host && b.host && (!limited || len(http) > 0), http: http, git: git}
	if spoken && len(git) == 0 || out.silent() {
		return denied // without a git entry git's requests would be like any other
	}
	return out
}

// meetHTTP returns the requests that both permit, and whether they are limited.
func meetHTTP(a, b saying) ([]netrule.HTTP, bool) {
	switch {
	case len(a.http)+len(b.http) == 0:
		return nil, false
	case len(a.http) == 0:
		return onlyIf(a.host, b.http), true
	case len(b.http) == 0:
		return onlyIf(b.host, a.http), true
	}
	return pairs(a.http, b.http, netrule.HTTP.Meet), true
}

// meetGit returns the operations that both permit, and whether one speaks of
// git.
func meetGit(a, b saying) ([]netrule.Git, bool) {
	switch {
	case len(a.git)+len(b.git) == 0:
		return nil, false
	case len(a.git) == 0:
		return onlyIf(a.opaque(), b.git), true
	case len(b.git) == 0:
		return onlyIf(b.opaque(), a.git), true
	}
	return pairs(a.git, b.git, netrule.Git.Meet), true
}

func onlyIf[T any](ok bool, list []T) []T {
	if ok {
		return list
	}
	return nil
}

func pairs[T interface{ Covers(T) bool }](a, b []T, meet func(T, T) (T, bool)) []T {
	var out []T
	for _, x := range a {
		for _, y := range b {
			if m, ok := meet(x, y); ok {
				out = append(out, m)
			}
		}
	}
	return pruned(out)
}

// pruned drops entries that another one covers.
func pruned[T interface{ Covers(T) bool }](list []T) []T {
	var out []T
	for _, e := range list {
		if !slices.ContainsFunc(out, func(o T) bool { return o.Covers(e) }) {
			out = append(slices.DeleteFunc(out, func(o T) bool { return e.Covers(o) }), e)
		}
	}
	return out
}

// fitting drops entries that are too long to be read.
func fitting[T interface{ String() string }](list []T, parse func(string) (T, error)) []T {
	return slices.DeleteFunc(slices.Clone(list), func(e T) bool {
		_, err := parse(e.String())
		return err != nil
	})
}

// same reports whether two sayings about one cell permit the same.
func (s saying) same(o saying) bool {
	return s.closed == o.closed && s.host == o.host && slices.Equal(sorted(s.http), sorted(o.http)) && slices.Equal(sorted(s.git), sorted(o.git))
}

func sorted[T interface{ String() string }](list []T) []string { return sortedSet(texts(list)) }

// names lists the names and networks in entries, each once, wide ones before
// those that they cover. They have no ports.
func names(reaches ...reach) []netrule.Host {
	byText := map[string]netrule.Host{}
	for _, r := range reaches {
		for _, h := range r.all() {
			h = h.On(netrule.Ports{})
			byText[h.String()] = h
		}
	}
	depth := map[string]int{}
	var out []netrule.Host
	for text, h := range byText {
		out = append(out, h)
		for _, o := range byText {
			if o.CoversName(h) {
				depth[text]++
			}
		}
	}
	slices.SortFunc(out, func(a, b netrule.Host) int {
		return cmp.Or(cmp.Compare(depth[a.String()], depth[b.String()]), cmp.Compare(a.String(), b.String()))
	})
	return out
}

// all lists the hosts of all entries.
func (r reach) all() []netrule.Host {
	out := slices.Concat(r.hosts, r.closed)
	for _, e := range r.http {
		out = append(out, e.Host())
	}
	for _, e := range r.git {
		out = append(out, e.Host())
	}
	return out
}

// cells yields a name with every set of ports that all entries treat alike.
func cells(name netrule.Host, reaches ...reach) []netrule.Host {
	every, _ := netrule.ParsePorts("*")
	sets := []netrule.Ports{every}
	for _, r := range reaches {
		for _, h := range r.all() {
			if h.CoversName(name) {
				sets = split(sets, h.Ports())
			}
		}
	}
	var out []netrule.Host
	for _, set := range sets {
		for _, ports := range set.Lists() {
			out = append(out, name.On(ports))
		}
	}
	return out
}

func split(sets []netrule.Ports, by netrule.Ports) []netrule.Ports {
	var out []netrule.Ports
	for _, set := range sets {
		for _, part := range []netrule.Ports{set.Meet(by), set.Without(by)} {
			if !part.Empty() {
				out = append(out, part)
			}
		}
	}
	return out
}

// meetReach finds and says the meet, wide cells before narrow ones.
func meetReach(a, b reach) reach {
	var out reach
	for _, name := range names(a, b) {
		for _, cell := range cells(name, a, b) {
			out.say(cell, meetSayings(a.of(cell), b.of(cell)))
		}
	}
	return out
}

// say adds what makes the entries say this of a cell. Where something wider
// speaks already the cell is closed first. That nothing is said can't be said
// then: it is denied.
func (r *reach) say(cell netrule.Host, want saying) {
	have := r.of(cell)
	if want.silent() && !have.silent() {
		want = denied
	}
	if have.same(want) {
		return
	}
	if !have.silent() || want.closed {
		r.closed = append(r.closed, cell)
	}
	if want.host {
		r.hosts = append(r.hosts, cell)
	}
	r.http, r.git = append(r.http, want.http...), append(r.git, want.git...)
}
