package gitstore

import (
	"context"
	"io"
	"testing"
)

// A git that is ended at its last moment does not end the sandbox of the next.
func TestEndedGitEndsNoOther(t *testing.T) {
	w := newConfined(t, newHost(t))
	u, err := w.opts.Untrusted(w.store.View())
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	for range 20 {
		ctx, cancel := context.WithCancel(t.Context())
		_ = u.Git(ctx, ".", nil, cancelling{cancel}, "rev-parse", "HEAD") // it may have ended before
		if err := u.Git(t.Context(), ".", nil, io.Discard, "rev-list", "--objects", "HEAD"); err != nil {
			t.Fatal(err)
		}
	}
}

// A cancelling Writer ends a context with the first byte.
type cancelling struct{ cancel context.CancelFunc }

func (c cancelling) Write(p []byte) (int, error) {
	c.cancel()
	return len(p), nil
}
