package sealed

import (
	"path/filepath"
	"testing"
)

// BenchmarkReach is what an ordinary user's session waits for, for each path that it
// mounts from behind a seal.
func BenchmarkReach(b *testing.B) {
	dir := filepath.Join(b.TempDir(), "seal")
	f, err := Create(dir)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	b.Cleanup(func() { _ = Remove(dir) })
	for b.Loop() {
		f, err := Reach(Inside(dir))
		if err != nil {
			b.Fatal(err)
		}
		f.Close()
	}
}
