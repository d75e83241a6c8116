package egressd

import (
	"errors"
	"os"
	"testing"

	"github.com/bawn-dev/bawn/internal/egress"
)

// TestTold: an error that bawn was sent is bawn's to say; every other one is
// said here.
func TestTold(t *testing.T) {
	mine, theirs, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer mine.Close()
	wrong := errors.New("wrong")
	if !errors.As(fail(egress.NewChannel(theirs), wrong), new(told)) {
		t.Error("what bawn was sent would be said twice")
	}
	if err := theirs.Close(); err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{fail(egress.NewChannel(theirs), wrong), wrong, errors.Join(wrong, wrong)} {
		if errors.As(err, new(told)) {
			t.Errorf("nobody says %q", err)
		}
	}
}
