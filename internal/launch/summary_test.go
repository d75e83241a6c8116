package launch

import (
	"slices"
	"testing"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/sandbox/layout"
)

// TestQuietRefusals: refused caches, logs, histories and telemetry are not told, whatever
// else is refused is; a place of the guest's choosing that is protected is told by any name.
func TestQuietRefusals(t *testing.T) {
	home := t.TempDir()
	for name, told := range map[string]bool{
		home + "/.local/share/fish/fish_history.GXWZcR": false,
		home + "/.bash_history":                         false,
		home + "/.npm/_logs/2026-debug-0.log":           false,
		home + "/.npm/_cacache/tmp/x":                   false,
		home + "/.config/gh/telemetry.json":             false,
		home + "/.cache/x":                              false,
		home + "/.local/share/fish":                     false,
		home + "/.config/fish/config.fish":              true,
		"/var/log/x":                                    false,
		"/var/cache/fontconfig/x":                       false,
		home + "/.config/gh/config.yml":                 true,
		home + "/catalog":                               true,
		home + "/other/project/main.go":                 true,
		"/usr/lib/python3.11/json/__pycache__":          false,
		"/opt/x/__pycache__/a.pyc.1":                    false,
		"/opt/x__pycache__":                             true,
		"/etc/cache":                                    true,
		"/srv/logs/x":                                   true,
	} {
		d := sandbox.Denial{Resource: name, Rule: layout.RuleReadOnly}
		if got := len(withoutTries([]sandbox.Denial{d}, home)) == 1; got != told {
			t.Errorf("%s: told %v; want %v", name, got, told)
		}
		d.Rule = "protect:name"
		if got := withoutTries([]sandbox.Denial{d}, home); !slices.Equal(got, []sandbox.Denial{d}) {
			t.Errorf("%s by another rule: not told", name)
		}
	}
	for reason, told := range map[string]bool{"no rule names it": true, bawn.Answer{}.Denial(): false, bawn.Answer{Why: "not today"}.Denial(): true} {
		if got := len(withoutTries([]sandbox.Denial{{Reason: reason}}, home)) == 1; got != told {
			t.Errorf("%q: told %v; want %v", reason, got, told)
		}
	}
}
