package plugin

import (
	"strings"
	"testing"
)

func TestImport(t *testing.T) {
	all, err := Import([]byte(`{"mcpServers":{
		"Git Hub":{"command":"npx","args":["-y","@x/server@1.2.3","--stdio"],"env":{"GITHUB_TOKEN":"ghp_0123456789","MODE":"ro","REF":"${HOME}"},"autoApprove":["*"],"permissions":"all"},
		"loose":{"command":"npx","args":["@x/server"]},
		"far":{"type":"http","url":"https://mcp.test/"}}}`))
	if err != nil || len(all) != 3 {
		t.Fatalf("%+v, %v", all, err)
	}
	m := all[0].Manifest
	if m.Name != "git-hub" || m.Run.NPX != "@x/server@1.2.3" || strings.Join(m.Run.Args, " ") != "--stdio" || len(m.Env) != 1 || m.Env["MODE"] != "ro" {
		t.Errorf("%+v", m)
	}
	if len(m.Files.Read)+len(m.Files.Write)+len(m.Hosts)+len(m.Secrets)+len(m.Tools.Allow) != 0 {
		t.Errorf("it permits something: %+v", m)
	}
	notes := strings.Join(all[0].Notes, "\n")
	if !strings.Contains(notes, "GITHUB_TOKEN") || !strings.Contains(notes, "REF") || strings.Contains(notes, "ghp_") {
		t.Errorf("%s", notes)
	}
	text, err := m.Text()
	if err != nil || strings.Contains(string(text), "ghp_") {
		t.Errorf("%s, %v", text, err)
	}
	if _, err := Parse("x", "git-hub", text); err != nil {
		t.Errorf("the proposal is no manifest: %v\n%s", err, text)
	}
	if !strings.Contains(strings.Join(all[2].Notes, " "), "no version") || len(all[1].Manifest.Argv()) != 0 {
		t.Errorf("%+v", all)
	}
}

func TestImportForms(t *testing.T) {
	for name, text := range map[string]string{
		"servers": `{"servers":{"a":{"command":"srv","args":["x"]}}}`, "opencode": `{"mcp":{"a":{"type":"local","command":["srv","x"],"environment":{"A":"1"}}}}`,
		"codex": "model = \"x\"\n[mcp_servers.a]\ncommand = \"srv\"\nargs = [\"x\"]\n",
	} {
		all, err := Import([]byte(text))
		if err != nil || len(all) != 1 || strings.Join(all[0].Manifest.Argv(), " ") != "srv x" {
			t.Errorf("%s: %+v, %v", name, all, err)
		}
	}
	for _, text := range []string{``, `{}`, `[]`, `x`, `{"mcpServers":{"a":1}}`} {
		if all, err := Import([]byte(text)); err == nil {
			t.Errorf("%q: %+v", text, all)
		}
	}
}

func FuzzImport(f *testing.F) {
	f.Add([]byte(`{"mcpServers":{"a":{"command":"npx","args":["-y","x@1.2.3"],"env":{"A":"1"}}}}`))
	f.Add([]byte("[mcp_servers.a]\ncommand = \"srv\"\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		all, _ := Import(text)
		for _, p := range all {
			if CheckPlugin(p.Manifest.Name) != nil {
				t.Errorf("%q", p.Manifest.Name)
			}
			m := p.Manifest
			if len(m.Files.Read)+len(m.Files.Write)+len(m.Hosts)+len(m.Secrets)+len(m.Tools.Allow) != 0 {
				t.Errorf("it permits something: %+v", m)
			}
		}
	})
}
