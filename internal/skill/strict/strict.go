// Package strict reads the texts that steer an agent, strictly: front matter of
// known keys, and CommonMark (spec 0.31). HTML, anything that loads or runs
// while it is read, and text that its reader does not see are refused.
package strict

import (
	"bytes"
	"fmt"
	"path"
	"strings"

	"github.com/bawn-dev/bawn/internal/skill"
)

// Check reads the item at a path. Its digest is of exactly the bytes that were
// checked.
func Check(k skill.Kind, at string) skill.Report {
	r := skill.Report{}
	c := checker{kind: k, at: at, report: &r}
	r.Item = skill.Scan(k, at, func(f skill.File) error {
		c.file(f)
		return nil
	})
	switch {
	case r.Fault != nil:
		r.Faults = append(r.Faults, r.Fault)
	case k == skill.Skill && c.skills == 0:
		r.Faults = append(r.Faults, &skill.Fault{File: at, Problem: "it has no SKILL.md; want one that says its name and what it is for"})
	}
	r.Faults = r.Faults[:min(len(r.Faults), skill.MaxFaults)]
	if c.programs > 0 {
		r.Notices = append(r.Notices, fmt.Sprintf("%d of its files can be executed", c.programs))
	}
	if c.binary > 0 {
		r.Notices = append(r.Notices, fmt.Sprintf("%d of its files are no text: only their digest is known", c.binary))
	}
	return r
}

type checker struct {
	kind     skill.Kind
	at       string
	report   *skill.Report
	skills   int // SKILL.md
	programs int
	binary   int
}

func (c *checker) file(f skill.File) {
	if problem := misleading(f.Name); problem != "" {
		c.fault(&skill.Fault{File: f.Name, Problem: problem})
	}
	if f.Executable || bytes.HasPrefix(f.Content, []byte("#!")) {
		c.programs++
	}
	text := skill.Text(f.Name) || c.kind == skill.Instructions
	switch {
	case !text && !skill.Readable(f.Content):
		c.binary++
	case !text:
		c.fault(skill.Hidden(f.Name, f.Content)...)
	default:
		c.text(f)
	}
}

// misleading says why a file's name is not what a human sees, or "".
func misleading(name string) string {
	for part := range strings.SplitSeq(name, "/") {
		switch problem := unseen(part); {
		case problem != "":
			return "its name: " + problem
		case strings.ContainsAny(part, "\r\n\t"), strings.TrimSpace(part) != part, strings.Contains(part, "  "):
			return "its name has blanks that can't be seen, at an end or several together; rename it"
		}
	}
	return ""
}

// text checks what an agent reads.
func (c *checker) text(f skill.File) {
	role := c.role(f)
	if role == RoleSkill {
		c.skills++
	}
	d := Parse(role, f.Name, c.expected(f), f.Content)
	c.fault(d.Faults...)
	c.report.Notices = append(c.report.Notices, d.Notices...)
	if c.report.Description == "" && role != RoleReference {
		c.report.Description = d.Description
	}
}

func (c *checker) fault(faults ...*skill.Fault) {
	c.report.Faults = append(c.report.Faults, faults...)
}

// A Role says what a text is to the agent, and so what it may hold. The zero Role
// may hold nothing.
type Role uint8

const (
	_                Role = iota
	RoleReference         // read when another text says so
	RoleSkill             // SKILL.md
	RoleDefinition        // of an agent or a command
	RoleSettings          // a definition in TOML or YAML
	RoleInstructions      // AGENTS.md, and data beside a skill: what is hidden is looked for, no more
)

// role says what a file of the item is.
func (c *checker) role(f skill.File) Role {
	switch base := strings.ToLower(path.Base(f.Name)); {
	case c.kind == skill.Instructions:
		return RoleInstructions
	case !markdown(base) && c.kind == skill.Definition:
		return RoleSettings
	case !markdown(base):
		return RoleInstructions
	case c.kind == skill.Definition:
		return RoleDefinition
	case base == "skill.md" || f.Alone:
		return RoleSkill
	}
	return RoleReference
}

// expected is the name that a skill must have: its folder's.
func (c *checker) expected(f skill.File) string {
	if dir := path.Dir(f.Name); !f.Alone && dir != "." {
		return path.Base(dir)
	}
	return skill.NameOf(c.at)
}

func markdown(name string) bool {
	switch path.Ext(name) {
	case ".toml", ".yaml", ".yml":
		return false
	}
	return true
}
