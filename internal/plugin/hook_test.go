package plugin

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bawn-dev/bawn"
)

const hookText = "kind = \"hook\"\nrun.command = [\"/bin/guard\"]\n"

func TestHookManifests(t *testing.T) {
	m := parsed(t, hookText+"[hook]\nkinds = [\"command\", \"filesystem\"]\nseconds = 7\n")
	if m.Hook.Patience() != 7*time.Second || !slices.Equal(m.Hook.Filled().Kinds, []bawn.Kind{bawn.Command, bawn.Filesystem}) {
		t.Errorf("%+v", m.Hook)
	}
	text, err := m.Text()
	if err != nil {
		t.Fatal(err)
	}
	again := parsed(t, string(text))
	if again.Kind != Hook || again.Hook.Seconds != 7 || !slices.Equal(again.Words(), m.Words()) {
		t.Errorf("%+v\n%s", again, text)
	}
	words := strings.Join(parsed(t, hookText).Words(), "\n")
	want := "is told of every command and tool call, with all of its words, and can have them asked about or denied, never allowed; what it does not answer in 5 s is denied"
	if !strings.Contains(words, want) || strings.Contains(words, "a tool asks you") {
		t.Errorf("%s", words)
	}
	if flags := strings.Join(m.RunFlags(Place{Home: "/h", Workspace: "/w", Own: "/h/own"}), " "); !strings.HasPrefix(flags, "--only --agent hook-github ") {
		t.Errorf("%s", flags)
	}
}

func TestHookManifestsAreRefused(t *testing.T) {
	for name, text := range map[string]string{
		"network":         hookText + "[hook]\nkinds = [\"network\"]\n",
		"no kinds":        hookText + "[hook]\nkinds = []\n",
		"twice":           hookText + "[hook]\nkinds = [\"tool\", \"tool\"]\n",
		"unknown kind":    hookText + "[hook]\nkinds = [\"Command\"]\n",
		"no time":         hookText + "[hook]\nseconds = 0\n",
		"too long":        hookText + "[hook]\nseconds = 61\n",
		"unknown key":     hookText + "[hook]\nallow = true\n",
		"another type":    hookText + "[hook]\nseconds = \"5\"\n",
		"tools":           hookText + "[tools]\nallow = [\"x\"]\n",
		"arguments":       hookText + "[arguments]\n\"x.y\" = \"path\"\n",
		"a server's hook": "run.command = [\"/bin/x\"]\n[hook]\nseconds = 5\n",
	} {
		if _, err := Parse("x.toml", "x", []byte(text)); err == nil || !strings.HasPrefix(err.Error(), "x.toml:") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestHooks: servers are left out also where they are broken; what may be a
// hook's manifest is not.
func TestHooks(t *testing.T) {
	dir := t.TempDir()
	put := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name+".toml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put("guard", hookText)
	put("server", "run.command = [\"/bin/x\"]\n")
	put("broken-server", "kind = \"mcp\"\nrun.nothing = 1\n")
	all, err := Hooks(dir)
	if err != nil || len(all) != 1 || all[0].Name != "guard" {
		t.Errorf("%v, %v", all, err)
	}
	for name, text := range map[string]string{"a hook": hookText + "seconds = 5\n", "no TOML": "kind = \"mcp\"\n= hook\n"} {
		put("broken", text)
		if _, err := Hooks(dir); err == nil {
			t.Errorf("%s: it is passed over", name)
		}
	}
	if all, err := Hooks(filepath.Join(dir, "none")); err != nil || all != nil {
		t.Errorf("%v, %v", all, err)
	}
}

func TestParseAnswer(t *testing.T) {
	for text, want := range map[string]Answer{
		`{"id":7,"verdict":"pass"}`:                             {Pass, ""},
		"{\"verdict\":\"deny\",\"id\":7,\"reason\":\"no\"}\r\n": {Deny, "no"},
		`{"id":7,"verdict":"ask","reason":"\u001b[2J"}`:         {Ask, "\x1b[2J"},
	} {
		if got, err := ParseAnswer([]byte(text), 7); err != nil || got != want {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for _, text := range refusedAnswers {
		if got, err := ParseAnswer([]byte(text), 7); err == nil {
			t.Errorf("%.80s: %+v", text, got)
		}
	}
}

var refusedAnswers = []string{
	``, `null`, `[]`, `7`, `{}`, `{"id":7}`, `{"verdict":"pass"}`, `{"id":8,"verdict":"pass"}`, `{"id":"7","verdict":"pass"}`, `{"id":7.0,"verdict":"pass"}`,
	`{"id":7,"verdict":"allow"}`, `{"id":7,"verdict":"Pass"}`, `{"id":7,"verdict":null}`, `{"id":7,"verdict":["pass"]}`, `{"id":7,"Verdict":"pass"}`,
	`{"id":7,"verdict":"deny","verdict":"pass"}`, `{"id":7,"verdict":"deny","Verdict":"pass"}`, `{"id":7,"verdict":"pass","more":1}`, `{"id":7,"verdict":"pass"} {}`,
	`{"id":7,"verdict":"pass","reason":3}`, "{\"id\":7,\"verdict\":\"pass\",\"reason\":\"\xff\"}", `{"id":7,"verdict":"pass"`,
	`{"id":7,"verdict":"pass","reason":"` + strings.Repeat("x", MaxAnswer) + `"}`,
}

func FuzzParseAnswer(f *testing.F) {
	for _, text := range refusedAnswers {
		f.Add([]byte(text), uint64(7))
	}
	f.Add([]byte(`{"id":7,"verdict":"pass","reason":"x"}`), uint64(7))
	f.Fuzz(func(t *testing.T, text []byte, id uint64) {
		a, err := ParseAnswer(text, id)
		switch {
		case err != nil && a != Answer{}:
			t.Errorf("%q: %+v beside %v", text, a, err)
		case err == nil && a.Verdict != Pass && a.Verdict != Ask && a.Verdict != Deny, err == nil && len(text) > MaxAnswer:
			t.Errorf("%q: %+v", text, a)
		}
	})
}
