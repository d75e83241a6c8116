//go:build !unix

package devices

// check refuses every device: Bawn knows no device names on this system.
func (kind) check(string, string) string { return "is not known on this system" }

// unknown gives the same reason for a name that has no kind.
func unknown(string) string { return "is not known on this system" }
