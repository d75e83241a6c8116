package supervise

import "testing"

func TestFileSetIsBounded(t *testing.T) {
	s := fileSet{}
	for i := range uint64(maxFiles) {
		if !s.add(fileID{ino: i}) {
			t.Fatalf("file %d was refused", i)
		}
	}
	if s.add(fileID{ino: maxFiles}) || !s.add(fileID{ino: 1}) || len(s) != maxFiles {
		t.Errorf("%d files; a new one was taken or an old one forgotten", len(s))
	}
}
