package launch

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/config"
	"github.com/bawn-dev/bawn/internal/sandbox"
	hostprovider "github.com/bawn-dev/bawn/internal/sandbox/host"
	"github.com/bawn-dev/bawn/internal/sandbox/seatbelt"
	"github.com/bawn-dev/bawn/internal/session"
	"github.com/bawn-dev/bawn/internal/verb"
)

// A choice is the provider of a session, and why it is that one.
type choice struct {
	sandbox.Provider
	Candidates []candidate // in the order in which they were looked at
	// Fallback says why the session runs on the host though nobody has named it;
	// nil elsewhere.
	Fallback error

	from *chooser
}

// A candidate is one provider, as --plan tells of it.
type candidate struct {
	Provider string            `json:"provider"`
	Chosen   bool              `json:"chosen,omitempty"`
	Why      string            `json:"why"`
	Unmet    []bawn.Capability `json:"unmet,omitempty"`
	InPart   []bawn.Capability `json:"in_part,omitempty"`
}

// Why a provider is chosen, or is not.
const (
	whyNamed     = "it is named"
	whyAll       = "the first that enforces all that is asked for"
	whyFallback  = "nobody can enforce what is asked for, and allow_fallback_to_host permits it"
	whyPart      = "it enforces all that is asked for, some of it in part, and allow_fallback_to_host permits less than all"
	whyNotTried  = "not tried: one before it enforces all"
	whyOther     = "not tried: the provider is named"
	whyNotWanted = "not tried: it has to be named"
	whyNoMac     = "not tried: this system is not macOS"
	whyNoImage   = "not tried: isolation.docker_options.image names no image"
	whyUnmet     = "it can't enforce all that is asked for"
	whyInPart    = "it enforces some of it in part only: it has to be named"
	whyParent    = "it is that of the session that starts this one"
	whyNoSplit   = "it can't keep the zones of a split session apart"
)

// A chooser finds the provider of one session.
type chooser struct {
	env     *Env
	setting Setting
	iso     bawn.Isolation
	split   bool
	child   bool // a guest has asked for the session
	// fallback says that less than all is permitted, on the host at last.
	fallback bool
	made     map[string]sandbox.Provider
	renewed  map[string]bool // whose known state has been dropped
	seen     []candidate
}

// choose finds the provider of a session: the one that is named, or else the
// strongest that enforces all that the isolation asks for. It
// looks at no other where the first one does, so that a start takes no longer.
func choose(spec *session.Spec, e *Env, cfg *config.Config, iso bawn.Isolation) (choice, error) {
	c := &chooser{
		env: e, setting: SettingOf(e, cfg), iso: iso, split: cfg.Split().On && spec.Parent == nil, child: spec.Parent != nil,
		fallback: cfg.FallbackToHost() && spec.Parent == nil, made: map[string]sandbox.Provider{}, renewed: map[string]bool{},
	}
	name := cfg.Provider
	if spec.Parent != nil && (name == "" || name != spec.Parent.Session.Provider && !spec.Has("provider")) {
		name = spec.Parent.Session.Provider
	}
	got, err := c.find(name)
	return got, withheld(cfg, err)
}

// find returns the provider of that name, or without one the strongest.
func (c *chooser) find(name string) (choice, error) {
	if name == "" {
		return c.strongest()
	}
	return c.named(name)
}

// withheld adds to a refusal that a project's file stands against the fallback.
func withheld(cfg *config.Config, err error) error {
	var ce *verb.Error
	if errors.As(err, &ce) && cfg.FallbackWithheld() {
		ce.Hint = "allow_fallback_to_host does not hold where a project's file says something: ask for less there, or move the file away; " + ce.Hint
	}
	return err
}

// named returns the provider of that name. A child's is met with its parent's
// before anything is asked of it.
func (c *chooser) named(name string) (choice, error) {
	p, err := c.get(name)
	if err != nil {
		return choice{}, err
	}
	if sandbox.AbilitiesOf(p).Unsandboxed || c.child {
		return c.take(p, whyNamed, nil), nil
	}
	d := c.look(p)
	if !d.meets(bawn.Partly) {
		return c.without(name, d)
	}
	return c.take(d.provider, whyNamed, nil), nil
}

// without is for a provider that is named and can't: another one is not taken
// in its place, but the host is where that is permitted and nobody else can.
func (c *chooser) without(name string, d deal) (choice, error) {
	others := c.others(name)
	err := d.refused(others)
	if !c.fallback || slices.ContainsFunc(others, func(p sandbox.Provider) bool { return c.look(p).meets(bawn.Partly) }) {
		return choice{}, err
	}
	if d.lacksLimitsOnly() || slices.ContainsFunc(others, func(p sandbox.Provider) bool { return c.look(p).lacksLimitsOnly() }) {
		return choice{}, wallsStand(err)
	}
	return c.host(err)
}

// strongest asks one after the other. Limits may be enforced in part, which is
// reported before the start. Anything else may be so only where less than all
// is permitted, with the strongest provider that has it.
func (c *chooser) strongest() (choice, error) {
	var first deal
	var inPart *deal
	var walls bool // somebody has all of them
	for _, l := range Roll {
		if !l.Eligible(c.setting) {
			c.seen = append(c.seen, candidate{Provider: l.Name, Why: l.unwanted()})
			continue
		}
		p, err := c.get(l.Name)
		if errors.Is(err, ErrNoBawnd) {
			c.seen = append(c.seen, candidate{Provider: l.Name, Why: err.Error()})
			continue
		}
		if err != nil {
			return choice{}, err
		}
		d := c.look(p)
		if d.meets(bawn.Enforced) {
			return c.take(d.provider, whyAll, nil), nil
		}
		if first.provider == nil {
			first = d
		}
		if inPart == nil && d.meets(bawn.Partly) {
			inPart = &d
		}
		walls = walls || d.lacksLimitsOnly()
		c.seen = append(c.seen, d.candidate())
	}
	if c.fallback && inPart != nil {
		return c.take(inPart.provider, whyPart, nil), nil
	}
	err := first.refused(c.others(first.provider.Name()))
	switch {
	case c.fallback && walls:
		return choice{}, wallsStand(err)
	case c.fallback:
		return c.host(err)
	case inPart != nil:
		return choice{}, inPart.offered(err)
	}
	return choice{}, err
}

// Eligible reports whether the provider may be chosen where none is named.
func (l Listed) Eligible(s Setting) bool { return l.wanted == nil || l.wanted(s) }

// unwanted says why it may not.
func (l Listed) unwanted() string {
	switch l.Name {
	case DockerName:
		return whyNoImage
	case seatbelt.Name:
		return whyNoMac
	}
	return whyNotWanted
}

// offered adds to the error of a session that no provider is chosen for the one
// that would do in part.
func (d deal) offered(err error) error {
	var ce *verb.Error
	if errors.As(err, &ce) {
		ce.Hint = fmt.Sprintf("if this is enough: --provider %s enforces all of it, but in part only %s", d.provider.Name(), attributes(d.partly))
	}
	return err
}

// host is the last resort. why says why the others can't.
func (c *chooser) host(why error) (choice, error) {
	p, err := c.get(hostprovider.Name)
	if err != nil {
		return choice{}, err
	}
	return c.take(p, whyFallback, why), nil
}

// get makes a provider, once.
func (c *chooser) get(name string) (sandbox.Provider, error) {
	if p := c.made[name]; p != nil {
		return p, nil
	}
	p, known := c.env.Find(name, c.setting)
	switch {
	case p == nil && known:
		return nil, c.env.Absent(name)
	case p == nil:
		return nil, verb.Usage("use one of "+strings.Join(ProviderNames(), ", "), "provider %q is not part of this version", name)
	}
	c.made[name] = p
	return p, nil
}

// othersPatience is how long the words of a refusal wait for bawnd.
const othersPatience = 5 * time.Second

// others are all that isolate, but for one.
func (c *chooser) others(but string) []sandbox.Provider {
	var list []sandbox.Provider
	for _, l := range Roll {
		if l.Name == but {
			continue
		}
		p, err := c.get(l.Name)
		switch {
		case errors.As(err, new(AbsentProvider)) && l.Eligible(c.setting):
			list = append(list, distant{name: l.Name, have: c.env.AskWhole(l.Name, othersPatience)})
		case err == nil && !sandbox.AbilitiesOf(p).Unsandboxed:
			list = append(list, c.look(p).provider)
		}
	}
	return list
}

// take ends the choice.
func (c *chooser) take(p sandbox.Provider, why string, fallback error) choice {
	c.seen = slices.DeleteFunc(c.seen, func(n candidate) bool { return n.Provider == p.Name() })
	c.seen = append(c.seen, candidate{Provider: p.Name(), Chosen: true, Why: why})
	rest := whyNotTried
	if why == whyNamed {
		rest = whyOther
	}
	for _, l := range Roll {
		if !slices.ContainsFunc(c.seen, func(n candidate) bool { return n.Provider == l.Name }) {
			c.seen = append(c.seen, candidate{Provider: l.Name, Why: rest})
		}
	}
	return choice{Provider: p, Candidates: c.seen, Fallback: fallback, from: c}
}

// A deal is what one provider can do for a session.
type deal struct {
	provider sandbox.Provider
	partly   []bawn.Capability
	err      error // of Negotiate
	noSplit  bool
	iso      bawn.Isolation
}

// look negotiates with a provider. If an earlier trial failed, it is repeated:
// a remedy may have been applied since.
func (c *chooser) look(p sandbox.Provider) deal {
	d := deal{provider: p, iso: c.iso, noSplit: c.split && !sandbox.AbilitiesOf(p).Split}
	d.partly, d.err = sandbox.Negotiate(c.iso, p)
	if d.err == nil || c.renewed[p.Name()] {
		return d
	}
	c.renewed[p.Name()] = true
	c.setting.Forget(p.Name())
	if again, _ := c.env.Find(p.Name(), c.setting); again != nil {
		c.made[p.Name()], d.provider = again, again
		d.partly, d.err = sandbox.Negotiate(c.iso, again)
	}
	return d
}

// lacksLimitsOnly reports whether limits alone stand against the provider.
func (d deal) lacksLimitsOnly() bool {
	var no *sandbox.MismatchError
	return !d.noSplit && errors.As(d.err, &no) && !slices.ContainsFunc(no.Unmet, func(n bawn.Capability) bool { return !sandbox.IsLimit(n.Attribute) })
}

// wallsStand is a refusal where a fallback would lose every wall for a limit,
// which the host does not enforce either.
func wallsStand(err error) error {
	var ce *verb.Error
	if errors.As(err, &ce) {
		ce.Hint = "the sandbox itself can be had, so that nothing falls back to the host: leave out the limits that can't be enforced; " + ce.Hint
	}
	return err
}

// meets reports whether all is enforced to that strength. Limits may hold in
// part.
func (d deal) meets(s bawn.Strength) bool {
	wall := func(n bawn.Capability) bool { return !sandbox.IsLimit(n.Attribute) }
	return d.err == nil && !d.noSplit && (s != bawn.Enforced || !slices.ContainsFunc(d.partly, wall))
}

// candidate says why the provider is not chosen.
func (d deal) candidate() candidate {
	n := candidate{Provider: d.provider.Name(), InPart: d.partly}
	var mismatch *sandbox.MismatchError
	switch {
	case errors.As(d.err, &mismatch):
		n.Why, n.Unmet = whyUnmet, mismatch.Unmet
	case d.noSplit:
		n.Why = whyNoSplit
	default:
		n.Why = whyInPart
	}
	return n
}

// refused is the error of a session that does not get this provider.
func (d deal) refused(others []sandbox.Provider) error {
	if _, err := sandbox.Negotiate(d.iso, d.provider, others...); err != nil {
		return planError(err)
	}
	if d.noSplit {
		return splitError(d.provider, others)
	}
	return &verb.Error{Code: verb.ExitInternal, Err: fmt.Errorf("provider %q enforces in part only what this session asks for: %s", d.provider.Name(), attributes(d.partly)),
		Hint: "name it if that is enough: --provider " + d.provider.Name()}
}

// splitError says which provider can keep zones apart.
func splitError(p sandbox.Provider, others []sandbox.Provider) error {
	var can []string
	for _, o := range others {
		if sandbox.AbilitiesOf(o).Split {
			can = append(can, "--provider "+o.Name())
		}
	}
	return verb.Usage("use "+strings.Join(append(can, "no --split"), ", or "), "provider %q can't keep the zones of a split session apart", p.Name())
}

// attributes lists what capabilities are about.
func attributes(list []bawn.Capability) string {
	names := make([]string, len(list))
	for i, c := range list {
		names[i] = c.Attribute
	}
	return strings.Join(names, ", ")
}
