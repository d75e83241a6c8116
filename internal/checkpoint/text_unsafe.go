package checkpoint

import "unsafe"

// text is b as a string, for bytes that nobody changes any more.
func text(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
