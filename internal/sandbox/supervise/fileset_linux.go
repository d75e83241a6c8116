package supervise

// maxFiles bounds the files that a guest can make its supervisor remember.
const maxFiles = 1 << 15

// A fileSet remembers files. It never holds more than maxFiles.
type fileSet map[fileID]bool

// add reports whether id is in the set now.
func (s fileSet) add(id fileID) bool {
	if len(s) < maxFiles {
		s[id] = true
	}
	return s[id]
}
