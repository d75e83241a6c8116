package broker

import "maps"

// A Maker is the process that removes what was made for its session. Self makes
// it.
type Maker struct {
	process string // PID:START
	space   string
}

// labels adds Bawn's own to a guest's.
func (m Maker) labels(guest map[string]string, session, role string) map[string]string {
	out := maps.Clone(guest)
	if out == nil {
		out = map[string]string{}
	}
	out[LabelSession], out[LabelMaker], out[LabelSpace], out[LabelRole] = session, m.process, m.space, role
	return out
}
