package session_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSkillsAreAskedAbout: what steers an agent and was never seen is asked about
// before the session starts, at the terminal; "always" pins it.
func TestSkillsAreAskedAbout(t *testing.T) {
	h := newHome(t)
	put := func(name, text string, perm os.FileMode) {
		t.Helper()
		path := filepath.Join(h.dir, name)
		check(t, os.MkdirAll(filepath.Dir(path), 0o755))
		check(t, os.WriteFile(path, []byte(text), perm))
	}
	put("bin/claude", "#!/bin/sh\ncat .claude/skills/*/SKILL.md\necho the agent en''ds\n", 0o755)
	skill := func(text string) {
		put("project/.claude/skills/commit/SKILL.md", "---\nname: commit\ndescription: Writes "+text+".\n---\n", 0o644)
	}
	run := []string{"bawn", "run", "--net", "none", "--ro", h.bin, "--", filepath.Join(h.bin, "claude")}
	const prompt = "allow it once? [y/s/a/n/N/?] "
	answered := func(answer string) string {
		t.Helper()
		p := h.openTerminal(run...)
		if answer != "" {
			p.sees("the guest wants to follow skills or definitions")
			p.sees("new skill commit")
			p.answers(prompt, answer)
		}
		if answer == "a" {
			p.answers("keep it? [yes/no] ", "yes")
		}
		p.sees("the agent ends")
		p.ends(0)
		return p.screen()
	}
	skill("messages")
	if s := answered("n"); strings.Contains(s, "description: Writes") {
		t.Errorf("it was not allowed, and the agent reads %q", s)
	}
	if s := answered("y"); !strings.Contains(s, "description: Writes messages") {
		t.Errorf("it was allowed, and the agent reads %q", s)
	}
	if s := answered("a"); !strings.Contains(s, "description: Writes messages") {
		t.Errorf("it was allowed always, and the agent reads %q", s)
	}
	if s := answered(""); !strings.Contains(s, "description: Writes messages") || strings.Contains(s, "allow it") {
		t.Errorf("it was pinned, and the agent reads %q", s)
	}
	skill("something else")
	p := h.openTerminal(run...)
	p.sees("changed skill commit")
	p.sees("has changed since it was pinned")
	p.sees(prompt)
	p.types("\x03")
	p.sees("the agent ends")
	if s := p.screen(); strings.Contains(s, "description: Writes") {
		t.Errorf("it has changed, and the agent reads %q", s)
	}
	p.ends(0)
	if log := h.run("bawn", "audit", "query", "--json"); strings.Count(log.out, "skill/claude") != 4 {
		t.Errorf("the log has %s", log.out)
	}
}
