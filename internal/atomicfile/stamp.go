//go:build unix

package atomicfile

import "golang.org/x/sys/unix"

// StampOf returns the stamp of a file, which it does not open. Links are followed.
func StampOf(path string) Stamp {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return Stamp{}
	}
	return Stamp{int64(st.Dev), int64(st.Ino), st.Size, st.Mtim.Nano(), st.Ctim.Nano()} //nolint:unconvert,gosec // the types differ by platform, and are only compared
}
