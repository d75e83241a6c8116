// Package doctor finds out what this machine can enforce by trying it: each
// mechanism by itself, and then the sandbox as a whole, whose refusals are
// checked from outside.
package doctor

import "github.com/bawn-dev/bawn"

// A Check is one thing that was tried, or could not be because another one it
// stands on has failed.
type Check struct {
	Name     string `json:"name"`
	OK       bool   `json:"ok"`
	NotTried bool   `json:"notTried,omitempty"` // Detail names the check to mend first
	Refused  bool   `json:"refused,omitempty"`  // available but not safe: sessions don't get it
	Needed   bool   `json:"needed"`             // by the default profile
	Detail   string `json:"detail,omitempty"`
	Remedy   string `json:"remedy,omitempty"` // the one command that mends it
}

// A Report is what a machine can do.
type Report struct {
	System       string            `json:"system"`
	User         string            `json:"user"`
	Checks       []Check           `json:"checks"`
	Provider     string            `json:"provider"`
	Capabilities []bawn.Capability `json:"capabilities"`
}

// Healthy reports whether the default profile can be enforced.
func (r Report) Healthy() bool {
	for _, c := range r.Checks {
		if c.Needed && !c.OK {
			return false
		}
	}
	return len(r.Checks) > 0
}
