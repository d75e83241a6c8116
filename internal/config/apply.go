package config

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/fspath"
	"github.com/bawn-dev/bawn/internal/netrule"
)

// An authority says how far a setting is trusted.
type authority struct {
	layer     Layer
	untrusted bool // may only narrow
	ceiling   bool // a limit that would rise is left as it is, without an error
}

// layer applies what one file or the command line says. The profile comes
// first, so that a key beside it counts.
func (st *state) layer(f *file, a authority) error {
	var errs Errors
	for _, p := range f.profiles {
		p.untrusted = a.untrusted
		errs.take(p.at, st.define(p, a))
	}
	for _, p := range f.profiles {
		errs.take(p.at, st.check(p, a))
	}
	for _, s := range profileFirst(f.settings) {
		errs.take(s.at, st.apply(s, a))
	}
	slices.SortStableFunc(errs, func(x, y *Error) int {
		return cmp.Or(cmp.Compare(x.Place.Line, y.Place.Line), cmp.Compare(x.Place.Column, y.Place.Column))
	})
	return errs.err()
}

// profileFirst puts the choice of a profile first, the pins last: they hold
// for the layers after.
func profileFirst(settings []setting) []setting {
	turn := map[string]int{"isolation.policy_profile": -1, "pinned": 1}
	sorted := slices.Clone(settings)
	slices.SortStableFunc(sorted, func(x, y setting) int { return cmp.Compare(turn[x.key.path], turn[y.key.path]) })
	return sorted
}

// define adds a profile. A name means one profile only: nobody can put another
// under the name that the user knows.
func (st *state) define(p *profile, a authority) error {
	if at, ok := st.pins["profiles"]; ok && a.layer > Managed {
		return pinnedError(p.at, "profiles", at)
	}
	if old, ok := st.profiles[p.name]; ok {
		return &Error{Place: p.at, Problem: fmt.Sprintf("profile %q is defined at %s already; want another name", p.name, old.at)}
	}
	st.profiles[p.name] = p
	return nil
}

// check tests at once whether a profile could be chosen: what it extends
// exists, and in an untrusted file its keys narrow.
func (st *state) check(p *profile, a authority) error {
	chain, err := st.chain(p.name, p.at)
	if err != nil || !a.untrusted {
		return err
	}
	var errs Errors
	trial := st.clone()
	for _, base := range chain {
		for _, s := range base.settings {
			if base != p {
				s = chosen(s, p.extendsAt, base.name)
			}
			errs.take(s.at, trial.apply(s, authority{layer: a.layer, untrusted: true, ceiling: base.ceiling}))
		}
	}
	return errs.err()
}

// apply states one setting, if the authority reaches that far.
func (st *state) apply(s setting, a authority) error {
	switch {
	case s.key.path == "pinned":
		return st.pin(s)
	case a.layer == Project && s.key.rule == never:
		return &Error{Place: s.at, Problem: s.key.path + " can't be set by a project, whether trusted or not",
			Hint: "set it in your own configuration, see \"bawn config path\""}
	case s.key.path == "isolation.provider" && a.layer == Command && s.value == HostProvider && st.text(s.key.path) != HostProvider:
		return hostless(s.at)
	case s.key.path == dockerTable+"image" && a.layer == Project && st.text(s.key.path) != s.value && !pinnedImage(s.value.(string)):
		return &Error{Place: s.at, Problem: fmt.Sprintf("image %s can be another one tomorrow; want it with its digest, as NAME@sha256:DIGEST", quote(s.value.(string))),
			Hint: "\"docker image inspect --format '{{json .RepoDigests}}' NAME\" prints it"}
	case s.key.kind == list:
		return st.applyList(s, a)
	case s.key.rule == narrows:
		return st.choose(s, a)
	}
	return st.applyScalar(s, a)
}

// pin notes the keys and tables that no later layer may change.
func (st *state) pin(s setting) error {
	var errs Errors
	for _, it := range s.items {
		if it.text == "pinned" || find(it.text) == nil && !table(it.text) && it.text != "profiles" {
			errs.add(&Error{Place: it.at, Hint: didYouMean(it.text, keyPaths("", func(*key) bool { return true })),
				Problem: fmt.Sprintf("pinned %s is no key; want a key such as \"isolation.network\" or a table such as \"isolation\"", quote(it.text))})
		}
		st.pins[it.text] = it.at
	}
	st.put(s)
	return errs.err()
}

// choose lays a profile over the current settings.
func (st *state) choose(s setting, a authority) error {
	if at, ok := st.pinned(s.key.path); ok && a.layer > Managed && st.scalars[s.key.path].value != s.value {
		return pinnedError(s.at, s.key.path, at)
	}
	chain, err := st.chain(s.value.(string), s.at)
	if err != nil {
		return err
	}
	var errs Errors
	for _, p := range chain {
		if p.closes {
			st.closedBy = max(st.closedBy, s.at.Layer)
		}
		for _, ps := range p.settings {
			b := a
			b.untrusted = a.untrusted || p.untrusted
			b.ceiling = p.ceiling || b.untrusted && p.at == (Place{})
			errs.take(s.at, st.apply(chosen(ps, s.at, p.name), b))
		}
	}
	st.put(s)
	return errs.err()
}

// chosen moves a profile's setting to the layer that chose it. A built-in
// profile's settings have the place where it was chosen, and a project answers
// for settings that it chose from another file.
func chosen(s setting, by Place, name string) setting {
	move := func(at Place) Place {
		if at.Line == 0 || by.Layer == Project && at.File != by.File {
			at = by
		}
		at.Layer, at.Via = by.Layer, fmt.Sprintf("profile %q", name)
		return at
	}
	s.at = move(s.at)
	s.items = slices.Clone(s.items)
	for i := range s.items {
		s.items[i].at = move(s.items[i].at)
	}
	return s
}

func (st *state) applyScalar(s setting, a authority) error {
	old := st.scalars[s.key.path].value
	if old == s.value {
		if !a.untrusted {
			st.put(s)
		}
		return nil
	}
	wider := rank(s.key, s.value) > st.rank(s.key) || looksSilently(s.key, old, s.value)
	if a.ceiling && wider && s.key.limit() {
		return nil
	}
	if at, ok := st.pinned(s.key.path); ok && a.layer > Managed {
		return pinnedError(s.at, s.key.path, at)
	}
	if a.untrusted && (wider || s.key.rule != lower) {
		return widens(s.at, fmt.Sprintf("%s from %s to %s", s.key.path, st.shown(s.key), show(s.value)))
	}
	if a.untrusted && s.key.path == "autonomy" {
		st.autonomy = &scalar{s.value, s.at}
		return nil
	}
	st.put(s)
	return nil
}

// looksSilently reports whether a mode is replaced by one that is stricter
// about changes but not about reads: plan reads without asking, where strict
// asks about everything.
func looksSilently(k *key, old, value any) bool {
	return k.path == "mode" && old == bawn.ModeStrict.String() && value == bawn.ModePlan.String()
}

func (st *state) shown(k *key) string {
	if v := st.scalars[k.path].value; v != nil {
		return show(v)
	}
	if k.path == "autonomy" {
		return show(k.oneOf[int(st.rank(k))])
	}
	return "no limit"
}

func (st *state) applyList(s setting, a authority) error {
	var errs Errors
	for _, it := range s.items {
		errs.take(it.at, st.applyItem(s.key, it, a))
	}
	return errs.err()
}

func (st *state) applyItem(k *key, it item, a authority) error {
	if st.has(k, it.text) {
		return st.again(k, it, a)
	}
	if a.untrusted && k.rule == inHosts {
		return st.limitRequests(k, it)
	}
	if a.untrusted && k.rule == covered {
		if st.covers(k, it.text) {
			return nil
		}
		return widens(it.at, fmt.Sprintf("%s by %s", k.path, quote(it.text)))
	}
	if at, ok := st.pinned(k.path); ok && a.layer > Managed {
		return pinnedError(it.at, k.path, at)
	}
	if a.untrusted {
		return st.narrow(k, it)
	}
	st.append(k, it)
	return nil
}

// again states an entry that an earlier layer stated already: for a path it
// may have lost against another entry since.
func (st *state) again(k *key, it item, a authority) error {
	if st.sealed && it.at.Layer == Command {
		st.flagged(k, it)
	}
	access, isPath := accessOf(k, it.text)
	if !isPath || st.reaches[it.text].access == access {
		return nil
	}
	if a.untrusted {
		if access > st.access(it.text) {
			return widens(it.at, fmt.Sprintf("%s by %s", k.path, quote(it.text)))
		}
		return st.narrow(k, it)
	}
	if at, ok := st.pinned(k.path); ok && a.layer > Managed {
		return pinnedError(it.at, k.path, at)
	}
	st.reach(it.text, reach{access, it.at})
	return nil
}

// flagged notes that a flag gives the same as a file or a profile: alone, the
// flag still gives it (see only).
func (st *state) flagged(k *key, it item) {
	list := slices.Clone(st.lists[k.path])
	list[slices.IndexFunc(list, func(e entry) bool { return e.text == it.text })].at = it.at
	st.lists[k.path] = list
	if access, isPath := accessOf(k, it.text); isPath && st.reaches[it.text].access == access {
		st.reaches[it.text] = reach{access, it.at}
	}
}

// narrow takes an entry of an untrusted project file that closes something.
func (st *state) narrow(k *key, it item) error {
	access, isPath := accessOf(k, it.text)
	if !isPath {
		st.append(k, it)
		return nil
	}
	if access > bawn.Hidden && st.access(it.text) < bawn.ReadWrite {
		return widens(it.at, fmt.Sprintf("%s by %s, which is not writable before, so this could only open it", k.path, quote(it.text)))
	}
	if link := linkBelow(st.cover(it.text), it.text); link != "" {
		return &Error{Place: it.at, Problem: fmt.Sprintf("path %s passes through the symbolic link %s; want the place itself", quote(it.text), quote(link))}
	}
	st.narrowed = append(st.narrowed, narrowing{it.text, reach{access, it.at}})
	return nil
}

// covers reports whether the entry gives nothing that isn't given already.
func (st *state) covers(k *key, text string) bool {
	if k.path == "isolation.rw" {
		return st.access(text) == bawn.ReadWrite
	}
	return slices.ContainsFunc(st.lists[k.path], covering(coversBy(k, text)))
}

// coversBy returns whether an entry of the key gives what text would.
func coversBy(k *key, text string) func(entry string) bool {
	switch k.path {
	case "isolation.hosts", "isolation.models":
		return ruleCovers(netrule.ParseHost, text)
	case "isolation.git":
		return ruleCovers(netrule.ParseGit, text)
	case "isolation.secrets":
		return func(entry string) bool { return entry == "*" }
	case "isolation.env":
		return func(entry string) bool { return envCovers(entry, text) }
	case "isolation.open", "isolation.cache_dirs":
		return func(entry string) bool { return fspath.Below(text, entry) }
	}
	return func(string) bool { return false }
}

// rank orders the values of a key from the strictest to the widest.
func rank(k *key, v any) float64 {
	switch v := v.(type) {
	case string:
		return float64(slices.Index(k.oneOf, v))
	case bool: // true protects, or opens
		if v == k.opens {
			return 1
		}
		return 0
	case int64:
		return float64(v)
	case float64:
		return v
	}
	return v.(time.Duration).Seconds()
}

// rank returns the rank of the key's value in force.
func (st *state) rank(k *key) float64 {
	if k.path == "autonomy" {
		return float64(st.finalAutonomy())
	}
	if s, ok := st.scalars[k.path]; ok {
		return rank(k, s.value)
	}
	return k.unset
}

// finalAutonomy is the stated autonomy, or follows from the mode, but is never
// above that of an untrusted project file, unless a flag says so.
func (st *state) finalAutonomy() bawn.Autonomy {
	s, ok := st.scalars["autonomy"]
	a := autonomyOf(modeNamed(st.scalars["mode"].value))
	if ok {
		a = autonomyNamed(s.value)
	}
	if st.autonomy != nil && s.at.Layer != Command {
		a = min(a, autonomyNamed(st.autonomy.value))
	}
	return a
}

func autonomyOf(m bawn.Mode) bawn.Autonomy {
	switch m {
	case bawn.ModePermissive:
		return bawn.AutonomyFull
	case bawn.ModeSafe, bawn.ModeNormal, bawn.ModeAuto:
		return bawn.AutonomyModerate
	}
	return bawn.AutonomyNone
}

func modeNamed(v any) bawn.Mode {
	return bawn.Mode(slices.Index(find("mode").oneOf, v.(string)))
}

func autonomyNamed(v any) bawn.Autonomy {
	return bawn.Autonomy(slices.Index(find("autonomy").oneOf, v.(string)))
}

func widens(at Place, what string) error {
	return &Error{Place: at, Problem: "would widen " + what + "; a project may only narrow",
		Hint: "remove the line, or read the file and trust it as it is with \"bawn trust\"", Widens: what}
}

func pinnedError(at Place, path string, by Place) error {
	return &Error{Place: at, Problem: fmt.Sprintf("%s is pinned at %s and can't be changed here", path, by),
		Hint: "remove it; who manages this machine decides on " + by.File}
}
