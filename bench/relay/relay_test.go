package main

import (
	"testing"

	"github.com/bawn-dev/bawn/internal/audit"
	"github.com/bawn-dev/bawn/internal/guard"
	"github.com/bawn-dev/bawn/internal/policy"
)

// TestRate shows that decisions which are not recorded are not counted.
func TestRate(t *testing.T) {
	p, err := policy.New(nil, policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	log, err := audit.Open(t.TempDir()+"/audit", audit.Options{Sync: true})
	if err != nil {
		t.Fatal(err)
	}
	g := guard.Guard{Decider: decider{p}, Recorder: log}
	if took := rate(g, 8, 100); took <= 0 {
		t.Errorf("a decision took %v; want more than nothing", took)
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	if took := rate(g, 8, 100); took != 0 {
		t.Errorf("decisions were counted that could not be recorded: %v each", took)
	}
}
