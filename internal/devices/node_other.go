//go:build !unix

package devices

// check says that there is none: a device has no name on this system.
func (kind) check(string, string) string { return "is not known on this system" }

// unknown says the same of names that are none of a kind.
func unknown(string) string { return "is not known on this system" }
