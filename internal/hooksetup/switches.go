package hooksetup

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bawn-dev/bawn/internal/agents"
)

// A lever is a setting by which an agent's hooks are off.
type lever struct {
	agent, file string // the file as agents.Files has it
	path        []string
	off         any
}

var levers = []lever{
	{"claude", "$CLAUDE_CONFIG_DIR/settings.json", []string{"disableAllHooks"}, true},
	{"claude", ".claude/settings.json", []string{"disableAllHooks"}, true},
	{"claude", ".claude/settings.local.json", []string{"disableAllHooks"}, true},
	{"qwen", "$QWEN_HOME/settings.json", []string{"disableAllHooks"}, true},
	{"qwen", ".qwen/settings.json", []string{"disableAllHooks"}, true},
	{"gemini", "$GEMINI_CLI_HOME/.gemini/settings.json", []string{"hooksConfig", "enabled"}, false},
	{"gemini", ".gemini/settings.json", []string{"hooksConfig", "enabled"}, false},
	{"codex", "$CODEX_HOME/config.toml", []string{"features", "hooks"}, false},
	{"codex", ".codex/config.toml", []string{"features", "hooks"}, false},
}

// Off says which settings of the user's switch an agent's hooks off, whatever
// is written. They are nobody's but the user's to change.
func (s Setup) Off(a *agents.Agent) []string {
	var all []string
	for _, l := range levers {
		if l.agent != a.Name {
			continue
		}
		file, ok := a.Expand(l.file, agents.World{Home: s.Home, Project: s.Project, Getenv: s.Getenv})
		if !ok {
			continue
		}
		text, err := readFile(file)
		if err != nil {
			continue // what can't be read here is said where it is edited
		}
		if v, ok := lookup(settingsOf(text, a.Name), l.path); ok && v == l.off {
			all = append(all, fmt.Sprintf("%q says %s = %v: no hook runs until that is taken out", file, strings.Join(l.path, "."), l.off))
		}
	}
	return slices.Compact(all)
}

func settingsOf(text []byte, agent string) map[string]any {
	if agent == "codex" {
		v, _ := tomlMeaning(text)
		return v
	}
	d, err := readDocument(text)
	if err != nil {
		return nil
	}
	v, _ := d.meaning()
	m, _ := v.(map[string]any)
	return m
}
