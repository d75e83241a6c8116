package launch

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/runner"
	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/session"
	"github.com/bawn-dev/bawn/internal/verb"
)

// namedPlan is a plan that enforces nothing; only its name is printed.
type namedPlan struct{ sandbox.Plan }

func (namedPlan) Provider() string             { return "test" }
func (namedPlan) MarshalJSON() ([]byte, error) { return []byte("{}"), nil }

// TestPlanShowsEgress: what a session reaches is printed by the names of the
// configuration, and only where it counts.
func TestPlanShowsEgress(t *testing.T) {
	egress := bawn.Egress{Hosts: []string{"a.test:443"}, HTTP: []string{"b.test GET /"}, Ask: 30 * time.Second, MaxConns: 7}
	for network, want := range map[bawn.NetworkMode]map[string]any{
		bawn.NetworkNone: nil, bawn.NetworkFull: nil,
		bawn.NetworkAllowlist: {"hosts": []any{"a.test:443"}, "http": []any{"b.test GET /"}, "ask_timeout": "30s", "max_connections": 7.0},
	} {
		out, err := os.Create(filepath.Join(t.TempDir(), "out"))
		if err != nil {
			t.Fatal(err)
		}
		s := &runner.Session{Session: bawn.Session{Isolation: bawn.Isolation{Network: network, Egress: egress}}, Plan: namedPlan{}}
		if err := (&Planned{setup: &setup{Launch: &Launch{Spec: session.Spec{JSON: true}}, env: &Env{World: verb.World{Stdout: out}}}, Session: s}).show(); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(out.Name())
		if err != nil {
			t.Fatal(err)
		}
		var printed struct{ Egress map[string]any }
		if err := json.NewDecoder(bytes.NewReader(text)).Decode(&printed); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, printed.Egress); diff != "" {
			t.Errorf("%v: (-want +got)\n%s", network, diff)
		}
	}
}
