package egressd

import (
	"context"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/audit"
	"github.com/bawn-dev/bawn/internal/egress"
)

// A mailbox keeps what a session says to bawn.
type mailbox struct {
	mu       sync.Mutex
	messages []egress.Message
	err      error
	came     chan egress.Message
}

func newMailbox() *mailbox { return &mailbox{came: make(chan egress.Message, 99)} }

func (m *mailbox) send(msg egress.Message) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.messages = append(m.messages, msg)
	m.came <- msg
	return m.err
}

// denials are the refusals that the human was told.
func (m *mailbox) denials() (list []egress.Denial) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, msg := range m.messages {
		if msg.Denial != nil {
			list = append(list, *msg.Denial)
		}
	}
	return list
}

// config is what bawn tells the relay of a session, in directories of the
// test's own.
func config(t *testing.T, e bawn.Egress) egress.Config {
	t.Helper()
	dir := t.TempDir()
	return egress.Config{
		Session: "s-1", Agent: "agent", Provider: "native", Mode: bawn.ModeStrict, Autonomy: bawn.AutonomyModerate, Workspace: dir, Dir: dir, Home: dir,
		System: "linux", Egress: e, AuditDir: filepath.Join(dir, "audit"),
		Place: filepath.Join(dir, "run", "s-1"),
	}
}

// begin makes a session, which ends with the test.
func begin(t *testing.T, c egress.Config, env ...string) (*session, *mailbox) {
	t.Helper()
	box := newMailbox()
	s, err := whole(t.Context(), c, env, box.send)
	t.Cleanup(func() {
		if err := s.close(); err != nil {
			t.Error(err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return s, box
}

// whole is a session with all that the process makes one after the other.
func whole(ctx context.Context, c egress.Config, env environ, send func(egress.Message) error) (*session, error) {
	s, err := newSession(ctx, c, env, send)
	if err == nil {
		err = s.fill(ctx)
	}
	if err == nil {
		err = s.arm(ctx)
	}
	return s, err
}

// recorded are the events of a session's log.
func recorded(t *testing.T, s *session) (events []bawn.Event) {
	t.Helper()
	for e, err := range audit.Query(s.config.AuditDir, audit.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, e.Event)
	}
	return events
}

// service listens at the host's loopback and returns its port.
func service(t *testing.T) uint16 {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return netip.MustParseAddrPort(l.Addr().String()).Port()
}

func there(t *testing.T, path string) bool {
	t.Helper()
	_, err := os.Lstat(path)
	return err == nil
}

func decide(t *testing.T, s *session, resource string, args ...string) bawn.Decision {
	t.Helper()
	d, err := s.guard.Decider.Decide(context.Background(), s.action(resource, args...))
	if err != nil {
		t.Fatal(err)
	}
	return d
}
