// Package importer reads the permissions of other agents and programs and writes rules
// and settings of ours. It never widens: an entry that can't be expressed exactly becomes
// narrower or is left out, and is reported either way.
package importer

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/policy"
)

// MaxFile is the largest file that is read, in bytes.
const MaxFile = 4 << 20

// Formats are the names of the readable formats.
func Formats() []string { return []string{"claude", "codex", "gemini", "cadre"} }

// Priorities of formats in which the strictest rule wins.
const (
	priorityDeny  = 300
	priorityAsk   = 200
	priorityAllow = 100
)

func priorityOf(v bawn.Verdict) int {
	return []int{bawn.Deny: priorityDeny, bawn.Ask: priorityAsk, bawn.Allow: priorityAllow}[v]
}

// An Item is something a file says, with what became of it.
type Item struct {
	Line int    `json:"line"` // from 1
	Text string `json:"item"`
	Why  string `json:"why"`
}

// A Setting is a key of the configuration, for example "isolation.network".
// Its value is a string, bool, int64 or []string.
type Setting struct {
	Key   string `json:"key"`
	Value any    `json:"value"`
	Line  int    `json:"line"`
}

// An Import is what one file came to.
type Import struct {
	File     string
	Format   string
	Rules    []bawn.Rule
	Settings []Setting
	Left     []Item // entries that were not carried over, or not as they were meant
}

// Read reads a file of a format, which is one of Formats, or "" to go by its
// name and content. The error names the file and line that can't be read.
// Entries without an equal here are listed in Left. user says that the file is
// the user's own and not a project's, which changes the meaning of its paths.
func Read(format, file string, data []byte, user bool) (*Import, error) {
	if len(data) > MaxFile {
		return nil, fmt.Errorf("%s: it has %d bytes; want at most %d", file, len(data), MaxFile)
	}
	if format == "" {
		format = detect(file, data)
	}
	r := &reader{Import: Import{File: file, Format: format}, user: user}
	if err := r.read(data); err != nil {
		return nil, err
	}
	return &r.Import, nil
}

func (r *reader) read(data []byte) error {
	switch r.Format {
	case "claude":
		return r.claude(data)
	case "codex":
		return r.codex(data)
	case "gemini":
		return r.gemini(data)
	case "cadre":
		return r.cadre(data)
	}
	return r.errorAt(1, "it is not clear whose file this is; say --from with one of %q", Formats())
}

// detect recognises a format by words that only it has; "" if none or several
// match.
func detect(file string, data []byte) string {
	if strings.HasSuffix(file, ".rules") {
		return "codex"
	}
	found := slices.DeleteFunc(Formats(), func(format string) bool {
		return !slices.ContainsFunc(marks[format], func(m string) bool { return bytes.Contains(data, []byte(m)) })
	})
	if len(found) == 1 {
		return found[0]
	}
	return ""
}

var marks = map[string][]string{
	"claude": {`"permissions"`},
	"codex":  {"prefix_rule(", "approval_policy", "sandbox_mode", "sandbox_workspace_write"},
	"gemini": {"toolName", "commandPrefix", "mcpName", `"tools"`, `"allowedTools"`, `"excludeTools"`, `"coreTools"`},
	"cadre":  {`"isolation"`},
}

// A reader collects what one file comes to.
type reader struct {
	Import
	user bool
}

// left notes something that was not carried over.
func (r *reader) left(at Item, format string, args ...any) {
	at.Why = fmt.Sprintf(format, args...)
	r.Left = append(r.Left, at)
}

func (r *reader) set(line int, key string, value any) {
	r.Settings = append(r.Settings, Setting{Key: key, Value: value, Line: line})
}

// A choice is what one value of a key becomes: a setting, or why it becomes no
// setting.
type choice struct {
	key   string
	value any
	why   string
}

// choose takes the choice that a value stands for.
func (r *reader) choose(at Item, value any, choices map[string]choice, otherwise string) {
	name, _ := value.(string)
	switch c, ok := choices[name]; {
	case !ok:
		r.left(at, "%s", otherwise)
	case c.why != "":
		r.left(at, "%s", c.why)
	default:
		r.set(at.Line, c.key, c.value)
	}
}

// add takes a rule, if it can be read and matches its own examples.
func (r *reader) add(at Item, rule bawn.Rule) {
	rule.ID = fmt.Sprintf("%s:%d", r.Format, at.Line)
	rule.Source = bawn.User
	if rule.Priority == 0 {
		rule.Priority = priorityOf(rule.Verdict)
	}
	if err := policy.Check(rule); err != nil {
		r.left(at, "%s", strings.TrimPrefix(err.Error(), fmt.Sprintf("rule %q: ", rule.ID)))
		return
	}
	r.Rules = append(r.Rules, rule)
}

// errorAt is a mistake of the file itself.
func (r *reader) errorAt(line int, format string, args ...any) error {
	return fmt.Errorf("%s:%d: %s", r.File, max(line, 1), fmt.Sprintf(format, args...))
}

// lineOf is the number of the line that holds an offset, from 1.
func lineOf(data []byte, offset int) int {
	return bytes.Count(data[:min(max(offset, 0), len(data))], []byte{'\n'}) + 1
}
