package golden

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// A listener hears whether a test fails.
type listener struct {
	testing.TB
	said string
}

func (l *listener) Errorf(format string, args ...any) { l.said = fmt.Sprintf(format, args...) }

// TestCompare wants a difference to be told, and to go where files are written
// anew.
func TestCompare(t *testing.T) {
	file := filepath.Join(t.TempDir(), "new", "file")
	l := &listener{TB: t}
	update := *Update
	t.Cleanup(func() { *Update = update })
	*Update = true
	Compare(l, file, "one\n")
	*Update = false
	Compare(l, file, "one\n")
	if l.said != "" {
		t.Errorf("what was written differs: %s", l.said)
	}
	Compare(l, file, "two\n")
	if l.said == "" {
		t.Error("a difference is not told")
	}
	if text, err := os.ReadFile(file); string(text) != "one\n" {
		t.Errorf("the file is %q, %v", text, err)
	}
}
