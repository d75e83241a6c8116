package relay

import (
	"errors"
	"os"
	"time"

	"github.com/bawn-dev/bawn/internal/egress/sniff"
)

// An early stream is a guest's that is being heard for the first time, where
// its host may have to speak first. A guest that sends one word and waits for
// its answer, as many protocols do, is not kept waiting: bytes that can't name
// a host yet are passed on after a moment. Later bytes are still examined
// together with them, so that a pause lets no half of a request for another
// host pass. Once a request has begun to name its host, nothing is passed on.
type early struct {
	stream
	now    func() time.Time
	pause  time.Duration
	pass   func([]byte) error
	heard  []byte
	passed int // of heard
}

// Read returns the guest's next bytes.
func (e *early) Read(b []byte) (int, error) {
	for wait := e.pause; ; wait = webHello {
		var until time.Time // none: its host may speak first
		if len(e.heard) > e.passed {
			until = e.now().Add(wait)
		}
		_ = e.SetReadDeadline(until)
		n, err := e.stream.Read(b)
		e.heard = append(e.heard, b[:n]...)
		if n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
			return n, err
		}
		if hello, _ := sniff.Parse(e.heard, sniff.Limits{}); hello.Kind != sniff.Unknown {
			if wait == webHello {
				return 0, err
			}
			continue
		}
		if err := e.pass(e.heard[e.passed:]); err != nil {
			return 0, err
		}
		e.passed = len(e.heard)
	}
}
