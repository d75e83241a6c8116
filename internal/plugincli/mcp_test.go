package plugincli

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/launch"
	"github.com/bawn-dev/bawn/internal/plugin"
	"github.com/bawn-dev/bawn/internal/policy"
	"github.com/bawn-dev/bawn/internal/verb"
)

// TestManifestsAreRules decides calls by a manifest and by rules of the human
// beside it.
func TestManifestsAreRules(t *testing.T) {
	m := &plugin.Manifest{Name: "files", Tools: plugin.Tools{Allow: []string{"read_*", "write_*"}, Ask: []string{"write_*"}, Deny: []string{"*_secret", "@sampling"}}}
	mine := func(v bawn.Verdict, pattern string) bawn.Rule {
		return bawn.Rule{ID: "mine", Kind: bawn.Tool, Pattern: pattern, Verdict: v, Source: bawn.User}
	}
	for _, tt := range []struct {
		tool string
		mode bawn.Mode
		more []bawn.Rule
		want bawn.Verdict
	}{
		{"files/read_x", bawn.ModeNormal, nil, bawn.Allow},
		{"files/write_x", bawn.ModeNormal, nil, bawn.Ask},
		{"files/read_secret", bawn.ModeNormal, nil, bawn.Deny},
		{"files/other", bawn.ModeNormal, nil, bawn.Ask},
		{"files/other", bawn.ModePermissive, nil, bawn.Ask},
		{"files/@elicitation", bawn.ModeNormal, nil, bawn.Ask},
		{"files/@elicitation", bawn.ModeNormal, []bawn.Rule{mine(bawn.Allow, "files/@elicitation")}, bawn.Allow},
		{"files/@sampling", bawn.ModeNormal, nil, bawn.Deny},
		{"files/@roots", bawn.ModeNormal, nil, bawn.Ask},
		{"files/read_x@0123", bawn.ModeNormal, nil, bawn.Allow}, // a changed pin asks
		{"files/read_x", bawn.ModeNormal, []bawn.Rule{mine(bawn.Deny, "files/*")}, bawn.Deny},
		{"files/read_x", bawn.ModeNormal, []bawn.Rule{mine(bawn.Ask, "*/read_x")}, bawn.Ask},
		{"files/other", bawn.ModeNormal, []bawn.Rule{mine(bawn.Allow, "files/other")}, bawn.Allow},
		{"files/read_secret", bawn.ModeNormal, []bawn.Rule{mine(bawn.Allow, "files/*")}, bawn.Deny},
		{"files/@roots", bawn.ModeNormal, []bawn.Rule{mine(bawn.Allow, "files/*"), mine(bawn.Allow, "*")}, bawn.Ask}, // tools by a wildcard
		{"files/@roots", bawn.ModeNormal, []bawn.Rule{mine(bawn.Allow, "files/@roots")}, bawn.Allow},
		{"files/@roots", bawn.ModeNormal, []bawn.Rule{mine(bawn.Allow, "*@roots")}, bawn.Allow},
		{"files/@resource", bawn.ModeNormal, []bawn.Rule{mine(bawn.Allow, "files/*")}, bawn.Allow},
		{"fil/read_x", bawn.ModeNormal, nil, bawn.Ask}, // another plugin's: the mode's
	} {
		p, err := policy.New(append(manifestRules(m), tt.more...), policy.Options{})
		if err != nil {
			t.Fatal(err)
		}
		q := policy.Question{Action: bawn.Action{Kind: bawn.Tool, Operation: bawn.Call, Resource: tt.tool}, Mode: tt.mode, Autonomy: policy.AutonomyOf(tt.mode), Contained: bawn.ContainedFully}
		if d := p.Decide(&q); d.Verdict != tt.want {
			t.Errorf("%s in mode %v with %v: %v by %q, want %v", tt.tool, tt.mode, tt.more, d.Verdict, d.Rule, tt.want)
		}
	}
}

// TestAllToolsLendNothing: a manifest that allows all tools lets the server neither use
// the agent's model, nor learn its directories, nor ask its human; one that names it does.
func TestAllToolsLendNothing(t *testing.T) {
	for _, tt := range []struct {
		allow []string
		tool  string
		want  bawn.Verdict
	}{
		{[]string{"*"}, "files/anything", bawn.Allow},
		{[]string{"*"}, "files/@prompt", bawn.Allow},
		{[]string{"*"}, "files/@sampling", bawn.Ask},
		{[]string{"*", "?sampling"}, "files/@sampling", bawn.Ask},
		{[]string{"*"}, "files/@roots", bawn.Ask},
		{[]string{"*"}, "files/@elicitation", bawn.Ask}, // the agent's program answers it, or says yes to itself
		{[]string{"*", "@elicitation"}, "files/@elicitation", bawn.Allow},
		{[]string{"*", "@sampling"}, "files/@sampling", bawn.Allow},
	} {
		m := &plugin.Manifest{Name: "files", Tools: plugin.Tools{Allow: tt.allow}}
		p, err := policy.New(manifestRules(m), policy.Options{})
		if err != nil {
			t.Fatal(err)
		}
		q := policy.Question{Action: bawn.Action{Kind: bawn.Tool, Operation: bawn.Call, Resource: tt.tool}, Mode: bawn.ModeNormal, Autonomy: policy.AutonomyOf(bawn.ModeNormal), Contained: bawn.ContainedFully}
		if d := p.Decide(&q); d.Verdict != tt.want {
			t.Errorf("%s with allow = %q: %v by %q, want %v", tt.tool, tt.allow, d.Verdict, d.Rule, tt.want)
		}
	}
}

// TestTokenIsTheOwners attacks with a file that others could have read.
func TestTokenIsTheOwners(t *testing.T) {
	home := t.TempDir()
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	e := &launch.Env{World: verb.World{Environ: []string{"HOME=" + home}, Stderr: null}}
	if err := launch.MakeStateDir(e); err != nil {
		t.Fatal(err)
	}
	first, err := mcpToken(e)
	if err != nil || len(first) < 50 {
		t.Fatalf("%q %v", first, err)
	}
	if again, err := mcpToken(e); err != nil || again != first {
		t.Errorf("control: %q %v", again, err)
	}
	name := filepath.Join(home, ".local", "state", "bawn", tokenName)
	if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
	if err := os.Chmod(name, 0o644); err != nil {
		t.Fatal(err)
	}
	if got, err := mcpToken(e); err == nil {
		t.Errorf("a token that others read is used: %q", got)
	}
	if err := os.Rename(name, name+".x"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(name+".x", name); err != nil {
		t.Fatal(err)
	}
	if _, err := mcpToken(e); err == nil {
		t.Error("a link is followed")
	}
}
