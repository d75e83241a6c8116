package egressd

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/egress/mitm"
	"github.com/bawn-dev/bawn/internal/netrule"
)

// TestNamesOfSecretsAreRecorded: the log takes out what stands behind a name
// that is a credential's, and must not do so with the names of secrets.
func TestNamesOfSecretsAreRecorded(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "audit")
	rules, err := netrule.Compile(bawn.Egress{HTTP: []string{"api.test GET /**"}})
	if err != nil {
		t.Fatal(err)
	}
	s := &session{rules: rules}
	s.config.AuditDir = dir
	s.event = bawn.Event{Session: "s", Agent: "test", Provider: "native", Mode: bawn.ModeNormal}
	if err := s.openLog(context.Background()); err != nil {
		t.Fatal(err)
	}
	r := &requests{session: s}
	req := mitm.Request{Method: "GET", Scheme: "https", Host: "api.test", Port: 443, Path: "/v1", Readings: []string{"/v1"}}
	r.done(req, mitm.Result{Status: 200, Secrets: []string{"github", "api"}, Decision: bawn.Decision{Verdict: bawn.Allow, Rule: "isolation:http"}})
	if err := s.log.Close(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "log.jsonl"))
	if err != nil || !strings.Contains(string(text), `"lent":"api github"`) {
		t.Errorf("the log has %s, %v; want the names of the secrets", text, err)
	}
}
