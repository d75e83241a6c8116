package hooksetup

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

func TestSetTOML(t *testing.T) {
	for _, tt := range []struct{ old, want string }{
		{"", "[features]\nhooks = true\n"},
		{"a = 1", "a = 1\n\n[features]\nhooks = true\n"},
		{"[features]\nweb = true # c\n", "[features]\nhooks = true\nweb = true # c\n"},
		{"[features]", "[features]\nhooks = true\n"},
		{"[features]\nhooks = false\n[b]\n", "[features]\nhooks = true\n[b]\n"},
		{"  [ features ] # c\nx = 1\n", "  [ features ] # c\nhooks = true\nx = 1\n"},
		{"features.hooks = true\n", "features.hooks = true\n"},
		{"features = {hooks = true}\n", "features = {hooks = true}\n"},
	} {
		got, err := setTOML([]byte(tt.old), true, "features", "hooks")
		if err != nil || string(got) != tt.want {
			t.Errorf("%q: %q, %v; want %q", tt.old, got, err, tt.want)
		}
	}
	for old, want := range map[string]string{
		"features = {web = true}\n": "nothing was written", "features.web = true\n": "nothing was written", "[[features]]\n": "no table", "features = 1\n": "no table", "a = \n": "toml",
		"x = \"\"\"\n[features]\n\"\"\"\n": "nothing was written",
	} {
		if got, err := setTOML([]byte(old), true, "features", "hooks"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %q, %v; want %q", old, got, err, want)
		}
	}
}

// The digests are those that Codex 0.169.0 lists for these hooks.
func TestTrustDigest(t *testing.T) {
	file := `{"hooks": {"PreToolUse": [{"hooks": []}, {"hooks": [{"type":"command","command": "x"}, {"type": "command", "command": ` +
		`"/var/tmp/b/bawn hook codex || { [ $? -eq 2 ] || echo \"bawn hook gave no answer, so this is denied\" >&2; exit 2; }", "timeout": 3600}]}], ` +
		`"SubagentStop":[{"hooks":[{"type":"command","command":"'/b é/bawn' hook codex","timeout":60}]}]}}`
	got, err := trusts([]byte(file), []string{"/p/.codex/hooks.json"})
	want := []trust{
		{"/p/.codex/hooks.json:pre_tool_use:1:1", "sha256:8d1f4f30a53edb8e7c178bb434d6849d75120709efa169c2841c7a936caef400"},
		{"/p/.codex/hooks.json:subagent_stop:0:0", "sha256:870f225f53eeca3d717dc415ec3beda9bdd66a579f610061255b70007473465a"},
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestRequirements(t *testing.T) {
	s, _ := world(t)
	a := agent(t, "codex")
	for _, old := range []string{
		"", "# org\nallowed_sandbox_modes = [\"read-only\"]\n", "[features]\nhooks = true\nx = 1\n", "[hooks]\nmanaged_dir = \"/x\"\n[[hooks.PreToolUse]]\nmatcher = \"Bash\"\n[[hooks.PreToolUse.hooks]]\ntype = \"command\"\ncommand = \"lint\"\n",
	} {
		put, err := s.require([]byte(old), a)
		if err != nil {
			t.Fatalf("%q: %v", old, err)
		}
		v, err := tomlMeaning(put)
		if on, _ := lookup(v, []string{"features", "hooks"}); err != nil || on != true || !bytes.Contains(put, []byte("hook codex || {")) {
			t.Errorf("%v\n%s", err, put)
		}
		if again, err := s.require(put, a); err != nil || !bytes.Equal(again, put) {
			t.Errorf("again: %v\n%s", err, again)
		}
		back, err := unrequire(put, []byte(old))
		if err != nil || strings.TrimSpace(string(back)) != strings.TrimSpace(old) {
			t.Errorf("%v: %q; want %q", err, back, old)
		}
	}
	for old, want := range map[string]string{"[features]\nhooks = false\n": "no hook runs", begin + "x = 1\n": "take the lines between out", "hooks = 1\n": "no table", "a =": "toml"} {
		if _, err := s.require([]byte(old), a); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v; want %q", old, err, want)
		}
	}
}

func FuzzSetTOML(f *testing.F) {
	for _, seed := range []string{"", "[features]\n", "features.x = 1", "x = '''\n[features]\n'''", "[a.\"b.c\"]\nhooks = 1\n[features]# c\n hooks = false", "[[features]]"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, old []byte) {
		was, err := tomlMeaning(old)
		if err != nil {
			return
		}
		put, err := setTOML(old, true, "features", "hooks")
		if err != nil {
			return
		}
		is, err := tomlMeaning(put)
		if v, ok := lookup(is, []string{"features", "hooks"}); err != nil || !ok || v != true {
			t.Fatalf("%v: %q", err, put)
		}
		if _, had := lookup(was, []string{"features", "hooks"}); had {
			return
		}
		if back, err := unsetTOML(put, "features", "hooks"); err == nil {
			now, err := tomlMeaning(back)
			if err != nil || !same(full(now), full(was)) {
				t.Fatalf("%v: %q became %q, then %q", err, old, put, back)
			}
		}
	})
}
