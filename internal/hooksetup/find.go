package hooksetup

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bawn-dev/bawn/internal/agents"
	"github.com/bawn-dev/bawn/internal/atomicfile"
)

// A Found is an agent that is installed.
type Found struct {
	Path    string `json:"path"`
	Version string `json:"version,omitempty"` // "" where its files don't say
}

// usual are directories in which installers put programs, beside those of PATH.
var usual = []string{
	"~/.local/bin", "~/bin", "~/.npm-global/bin", "~/.bun/bin", "~/.volta/bin", "~/.opencode/bin", "~/.claude/local", "~/.cargo/bin", "~/go/bin",
	"~/.local/share/mise/shims", "~/.asdf/shims", "~/.nvm/versions/node/*/bin", "~/.local/share/pnpm", "~/Library/pnpm", "/usr/local/bin", "/opt/homebrew/bin", "/home/linuxbrew/.linuxbrew/bin",
}

// Find looks for an agent's program in PATH and where installers put one. What
// lies in the project does not count, whatever its name. Nothing is executed:
// the version is what the program's package says, or the name of its directory.
func (s Setup) Find(a *agents.Agent) (Found, bool) {
	for _, dir := range s.places() {
		for _, name := range a.Programs {
			file := filepath.Join(dir, name)
			real, err := filepath.EvalSymlinks(file)
			if err != nil || inside(s.Project, file) || inside(s.Project, real) || !executable(real) {
				continue
			}
			return Found{file, version(real, a.Package)}, true
		}
	}
	return Found{}, false
}

// places are the directories to look in, each once.
func (s Setup) places() []string {
	var all []string
	for _, dir := range filepath.SplitList(s.Getenv("PATH")) {
		if filepath.IsAbs(dir) { // any other is relative to wherever one is
			all = append(all, filepath.Clean(dir))
		}
	}
	for _, pattern := range usual {
		if rest, ok := strings.CutPrefix(pattern, "~/"); ok {
			pattern = filepath.Join(s.Home, rest)
		}
		found, _ := filepath.Glob(pattern) // the pattern is well formed but for a home of brackets
		all = append(all, found...)
	}
	seen := map[string]bool{}
	return slices.DeleteFunc(all, func(dir string) bool {
		was := seen[dir]
		seen[dir] = true
		return was
	})
}

func inside(dir, path string) bool {
	return dir != "" && (path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/"))
}

func executable(file string) bool {
	info, err := os.Stat(file)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// levels is how far above a program the description of its package may lie.
const levels = 6

// version looks for the package.json of the agent's own package above its
// program, or for a directory or file that is named by a version.
func version(program, name string) string {
	dir := filepath.Dir(program)
	for range levels {
		text, err := atomicfile.Read(filepath.Join(dir, "package.json"), most)
		var p struct{ Name, Version string }
		if err == nil && json.Unmarshal(text, &p) == nil && p.Version != "" && (p.Name == name || strings.HasPrefix(p.Name, name+"-")) {
			return p.Version
		}
		dir = filepath.Dir(dir)
	}
	for _, part := range []string{filepath.Base(program), filepath.Base(filepath.Dir(program)), filepath.Base(filepath.Dir(filepath.Dir(program)))} {
		if strings.Count(part, ".") >= 2 && strings.Trim(part, "0123456789.") == "" {
			return part
		}
	}
	return ""
}
