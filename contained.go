package bawn

// Contained says which parts of a session a provider enforces. Each part is true
// only where the provider has verified it by trial; the zero value contains nothing.
type Contained struct {
	Files     bool `json:"files"`     // no file outside of the session's own places can be changed
	Processes bool `json:"processes"` // no process outside of the session can be reached
	Network   bool `json:"network"`   // every connection is decided where it is made
}

// ContainedFully is a session of which every part is enforced.
var ContainedFully = Contained{Files: true, Processes: true, Network: true}

// Has reports whether every part of want is enforced.
func (c Contained) Has(want Contained) bool {
	return (c.Files || !want.Files) && (c.Processes || !want.Processes) && (c.Network || !want.Network)
}

// Missing names the parts of want that are not enforced.
func (c Contained) Missing(want Contained) (names []string) {
	for _, p := range []struct {
		name       string
		want, have bool
	}{{"files", want.Files, c.Files}, {"processes", want.Processes, c.Processes}, {"network", want.Network, c.Network}} {
		if p.want && !p.have {
			names = append(names, p.name)
		}
	}
	return names
}
