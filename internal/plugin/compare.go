package plugin

// Compare says how the tools that a server lists differ from its pins. A
// Change that is Refused comes for each tool that must not be offered at all.
func Compare(pinned Pins, listed []Tool) []Change {
	var changes []Change
	times, looks := map[string]int{}, map[string][]string{}
	for _, t := range listed {
		if times[t.Name]++; times[t.Name] == 1 {
			looks[Looks(t.Name)] = append(looks[Looks(t.Name)], t.Name)
		}
	}
	for _, t := range listed {
		if c, differs := pinned.compare(t, times[t.Name], looks[Looks(t.Name)]); differs {
			changes = append(changes, c)
		}
	}
	for _, t := range pinned.Tools {
		if times[t.Name] == 0 {
			changes = append(changes, Change{t.Name, Gone, "", "it is pinned and not listed any more"})
		}
	}
	return changes
}

// compare lists the changes of one tool, the worst first.
func (p Pins) compare(t Tool, times int, alike []string) (Change, bool) {
	digest, err := Digest(t)
	old, known := p.digest(t.Name)
	switch {
	case err != nil:
		return Change{t.Name, Unfit, "", err.Error()}, true
	case t.check() != nil:
		return Change{t.Name, Unfit, digest, t.check().Error()}, true
	case times > 1:
		return Change{t.Name, Shadowing, digest, "the server lists the name more than once"}, true
	case len(alike) > 1 && !known:
		return Change{t.Name, Confusable, digest, "its name looks like that of another tool of the server"}, true
	case !known:
		return Change{t.Name, New, digest, "it is not pinned"}, true
	case old != digest:
		return Change{t.Name, Changed, digest, "its description or schema is not the one that is pinned"}, true
	}
	return Change{}, false
}
