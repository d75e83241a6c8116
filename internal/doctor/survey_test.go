package doctor

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/sandbox"
)

// TestSurveyWaitsForNobody asks somebody who never answers: the others' columns
// are there, and his says so for every attribute.
func TestSurveyWaitsForNobody(t *testing.T) {
	never := make(chan struct{})
	defer close(never)
	var waiting []string
	columns := Survey([]Subject{
		{Name: "hangs", Ask: func() []bawn.Capability { <-never; return nil }},
		{Name: "answers", Ask: func() []bawn.Capability {
			return []bawn.Capability{{Attribute: sandbox.FSWrite, Strength: bawn.Enforced}, {Attribute: sandbox.LimitCPU, Strength: bawn.Partly}}
		}},
	}, 50*time.Millisecond, func(names []string) { waiting = append(waiting, strings.Join(names, " ")) })
	if want := []string{"hangs answers", "hangs"}; !slices.Equal(waiting, want) {
		t.Errorf("waited for %q; want %q", waiting, want)
	}
	for i, name := range []string{"hangs", "answers"} {
		var have []string
		for _, c := range columns[i].Capabilities {
			have = append(have, c.Attribute)
			if c.Strength == bawn.Unenforced && c.Why == "" {
				t.Errorf("%s: %s is not enforced; want to know why", name, c.Attribute)
			}
		}
		if columns[i].Provider != name || !slices.Equal(have, sandbox.Attributes()) {
			t.Errorf("column %+v; want every attribute of %q", columns[i], name)
		}
	}
	if got := columns[0].Of(sandbox.FSWrite); got.Strength != bawn.Unenforced || !strings.Contains(got.Why, "50ms") {
		t.Errorf("%+v; want that it has not answered in 50ms", got)
	}
	if got := columns[1].Of(sandbox.FSWrite); got.Strength != bawn.Enforced {
		t.Errorf("%+v; want it enforced", got)
	}
}

// TestElsewhere asks programs that answer, fail, talk nonsense and hang.
func TestElsewhere(t *testing.T) {
	for name, c := range map[string]struct {
		script string
		strong bool
		why    string
	}{
		"answers":  {`[ "$*" = "doctor --capabilities docker" ] && echo '[{"attribute":"fs.write","strength":"enforced"}]'`, true, ""},
		"fails":    {"echo broken >&2; exit 1", false, "broken"},
		"nonsense": {"echo yes", false, "invalid character"},
		"hangs":    {"exec sleep 60", false, "within 300ms"},
		"wide":     {`echo '[{"attribute":"fs.write","strength":"more"}]'`, false, "strength"},
	} {
		path := filepath.Join(t.TempDir(), "bawnd")
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"+c.script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		patience := 20 * time.Second
		if name == "hangs" {
			patience = 300 * time.Millisecond
		}
		got := Column{Capabilities: Elsewhere(path, "docker", t.TempDir(), []string{"PATH=/usr/bin:/bin"}, patience)}.Of(sandbox.FSWrite)
		if (got.Strength == bawn.Enforced) != c.strong || !strings.Contains(got.Why, c.why) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestMeets(t *testing.T) {
	column := func(unsandboxed bool, list ...bawn.Capability) Column {
		return Column{Unsandboxed: unsandboxed, Capabilities: list}
	}
	yes := bawn.Capability{Attribute: sandbox.FSWrite, Strength: bawn.Enforced}
	part := bawn.Capability{Attribute: sandbox.FSWrite, Strength: bawn.Partly}
	limit := bawn.Capability{Attribute: sandbox.LimitCPU, Strength: bawn.Partly}
	needs := []string{sandbox.FSWrite, sandbox.LimitCPU}
	for _, c := range []struct {
		column Column
		want   bool
	}{
		{column(false, yes, limit), true}, {column(false, part, limit), false}, {column(false, yes), false},
		{column(true, yes, limit), false}, {column(false), false},
	} {
		if got := c.column.Meets(needs); got != c.want {
			t.Errorf("%+v: meets %v; want %v", c.column, got, c.want)
		}
	}
}
