//go:build !unix

package atomicfile

// StampOf returns the zero Stamp: on this system no file is seen to change.
func StampOf(string) Stamp { return Stamp{} }
