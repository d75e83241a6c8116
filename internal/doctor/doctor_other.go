//go:build !linux

package doctor

import "runtime"

// Examine reports that nothing is enforced on this system.
func Examine() Report {
	return Report{System: runtime.GOOS, Checks: []Check{{
		Name: "provider", Needed: true, Detail: "no provider of this version works on " + runtime.GOOS, Remedy: "use Linux",
	}}}
}
