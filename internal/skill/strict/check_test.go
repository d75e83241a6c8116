package strict

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn/internal/skill"
)

func write(t *testing.T, path, text string, perm os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), perm); err != nil {
		t.Fatal(err)
	}
}

func folder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir() + "/commit"
	write(t, dir+"/SKILL.md", front+"See [a](references/a.md).\n", 0o644)
	write(t, dir+"/references/a.md", "# A\n\nBack to [it](../SKILL.md).\n", 0o644)
	write(t, dir+"/scripts/run.sh", "#!/bin/sh\necho '<b>'\n", 0o755)
	write(t, dir+"/assets/x.bin", "\x00\x01\xff", 0o644)
	write(t, dir+"/agents/openai.yaml", "x: \"!{y}\"\n", 0o644)
	return dir
}

func TestCheckFolder(t *testing.T) {
	dir := folder(t)
	r := Check(skill.Skill, dir)
	if r.Refused() || r.Digest != skill.Scan(skill.Skill, dir, nil).Digest {
		t.Fatalf("got %v %v", r.Faults, r.Digest)
	}
	if got := strings.Join(r.Notices, "; "); got != "1 of its files can be executed; 1 of its files are no text: only their digest is known" {
		t.Errorf("notices: %s", got)
	}
	if !strings.HasPrefix(r.Description, "Writes messages") {
		t.Errorf("description %q", r.Description)
	}
}

// TestOneBadFileRefusesTheFolder: the control is TestCheckFolder.
func TestOneBadFileRefusesTheFolder(t *testing.T) {
	for name, tt := range map[string]struct{ file, text, want string }{
		"HTML in a reference":      {"references/a.md", "# A\n<!-- x -->\n", "references/a.md:2: HTML"},
		"a link out of the folder": {"references/a.md", "[x](../../push/SKILL.md)\n", "references/a.md:1: the link"},
		"bidi in a script":         {"scripts/run.sh", "#!/bin/sh\n# \u202e x\n", "scripts/run.sh:2: the character U+202E"},
		"hidden in data":           {"agents/openai.yaml", "x: \u200b\n", "agents/openai.yaml:1: the character U+200B"},
		"a second skill inside":    {"more/SKILL.md", "x\n", "more/SKILL.md:1: no front matter"},
		"of another name":          {"more/SKILL.md", front, "more/SKILL.md:2: the name is"},
		"small letters":            {"deep/skill.md", "x\n", "deep/skill.md:1: no front matter"},
		"a long text":              {"references/b.md", strings.Repeat("x\n", skill.MaxText), "references/b.md: 262144 bytes"},
		"another ending":           {"references/c.markdown", "<b>x</b>\n", "references/c.markdown:1: HTML"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := folder(t)
			write(t, filepath.Join(dir, tt.file), tt.text, 0o644)
			r := Check(skill.Skill, dir)
			if !r.Refused() || !strings.HasPrefix(r.Faults[0].Error(), tt.want) {
				t.Errorf("got %v, want %q", r.Faults, tt.want)
			}
		})
	}
	dir := folder(t)
	if err := os.Rename(dir+"/SKILL.md", dir+"/README.md"); err != nil {
		t.Fatal(err)
	}
	if r := Check(skill.Skill, dir); !r.Refused() || !strings.Contains(r.Faults[0].Problem, "no SKILL.md") {
		t.Errorf("without SKILL.md: %v", r.Faults)
	}
	if r := Check(skill.Skill, dir+"/absent"); !r.Refused() {
		t.Error("what is not there may be used")
	}
	if (&skill.Report{}).Refused() == false {
		t.Error("a report of nothing says yes")
	}
}

func TestSkillsOfOneFile(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/commit.md", front, 0o644)
	if r := Check(skill.Skill, dir+"/commit.md"); r.Refused() {
		t.Errorf("control: %v", r.Faults)
	}
	write(t, dir+"/push.md", front, 0o644)
	if r := Check(skill.Skill, dir+"/push.md"); !r.Refused() {
		t.Error("it has another name")
	}
	write(t, dir+"/x.toml", "prompt = \"!{id}\"\n", 0o644)
	if r := Check(skill.Definition, dir+"/x.toml"); !r.Refused() {
		t.Error("a command that runs while it is read")
	}
}
