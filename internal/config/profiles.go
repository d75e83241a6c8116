package config

import (
	_ "embed" // the default profile's hosts
	"math"
	"slices"
	"strings"
	"time"
)

// AskTimeout is how long a connection waits for an answer where nothing else is
// configured.
const AskTimeout = 2 * time.Minute

// A Machine is the measure of the default profile.
type Machine struct {
	MemoryMB int64 // MiB of main memory
}

// A profile is a named bundle of settings of [isolation]. It is laid over the
// current settings where it is chosen; extends names one that is laid down
// first.
type profile struct {
	name      string
	extends   string
	extendsAt Place
	settings  []setting
	at        Place
	untrusted bool // defined by a project file that is not trusted
	ceiling   bool // its limits only lower
	closes    bool // earlier layers open nothing in the home (home.go)
}

// builtinNames are the profiles that exist without any file.
var builtinNames = []string{"default", "readonly", "online", "strict"}

// BuiltinProfiles lists the profiles that exist without any file.
func BuiltinProfiles() []string { return slices.Clone(builtinNames) }

// Profiles lists the profiles that a session could be started with.
func (c *Config) Profiles() []string { return c.st.profileNames() }

// EnvDefault lists the environment variables of the default profile. None of
// them can carry a credential.
func EnvDefault() []string {
	return strings.Fields("TERM COLORTERM LANG LC_* TZ PATH HOME USER LOGNAME SHELL EDITOR VISUAL PAGER" +
		" NO_COLOR FORCE_COLOR CLICOLOR LINES COLUMNS" +
		" GOFLAGS GOPROXY GOTOOLCHAIN GOPATH CARGO_HOME RUSTUP_HOME NVM_DIR PYENV_ROOT JAVA_HOME CI" +
		" GIT_AUTHOR_NAME GIT_AUTHOR_EMAIL GIT_AUTHOR_DATE GIT_COMMITTER_NAME GIT_COMMITTER_EMAIL GIT_COMMITTER_DATE")
}

// defaultNetwork is the network of the default profile.
//
//go:embed data/default.txt
var defaultNetwork string

// modelsMark is the line of defaultNetwork after which the APIs of models come.
const modelsMark = "[models]"

// network returns the settings of defaultNetwork. Its lines are as their
// entries are written, which a test sees to, so they are not read again.
func (b builder) network() []setting {
	hosts, git, models := setting{key: find("isolation.hosts")}, setting{key: find("isolation.git")}, setting{key: find("isolation.models")}
	http := setting{key: find("isolation.http")}
	inModels := false
	for line := range strings.Lines(defaultNetwork) {
		line = strings.TrimSpace(line)
		if rest, ok := strings.CutPrefix(line, "git "); ok {
			git.items = append(git.items, item{text: rest})
			continue
		}
		if rest, ok := strings.CutPrefix(line, "http "); ok {
			http.items = append(http.items, item{text: rest})
			continue
		}
		switch {
		case line == modelsMark:
			inModels = true
		case line != "" && line[0] != '#':
			hosts.items = append(hosts.items, item{text: line})
			if inModels {
				models.items = append(models.items, item{text: line})
			}
		}
	}
	return []setting{hosts, http, git, models}
}

// builtinProfiles returns the profiles of builtinNames, measured for m.
func builtinProfiles(m Machine, p paths) map[string]*profile {
	memory := max(1, m.MemoryMB*3/4)
	b := builder{p}
	return map[string]*profile{
		"default": {name: "default", settings: slices.Concat(
			b.scalars("network", "allowlist", "caches", "private", "protect", true, "ask_timeout", AskTimeout),
			b.network(),
			b.limits(memory, min(4096, max(1, memory/4)), 4096, 16384, 16384, 12*time.Hour),
			b.list("env", EnvDefault()), b.list("cache_dirs", cacheNames()))},
		"readonly": {name: "readonly", settings: b.list("ro", []string{"."})},
		"online":   {name: "online", settings: b.scalars("network", "full")},
		"strict": {name: "strict", ceiling: true, closes: true, settings: slices.Concat(
			b.scalars("network", "none", "caches", "read-only", "protect", true),
			b.limits(max(1, m.MemoryMB/4), min(1024, max(1, m.MemoryMB/16)), 512, 1024, 1024, 2*time.Hour))},
	}
}

// builder makes settings from values of the program itself.
type builder struct{ paths paths }

func (b builder) scalars(pairs ...any) []setting {
	var out []setting
	for i := 0; i < len(pairs); i += 2 {
		out = append(out, setting{key: find("isolation." + pairs[i].(string)), value: pairs[i+1]})
	}
	return out
}

func (b builder) limits(memory, tmp, pids, files, fileSize int64, timeout time.Duration) []setting {
	return b.scalars("resources.memory_mb", memory, "resources.tmp_mb", tmp, "resources.pids_limit", pids,
		"resources.open_files", files, "resources.file_size_mb", fileSize, "resources.timeout", timeout)
}

func (b builder) list(name string, entries []string) []setting {
	s := setting{key: find("isolation." + name)}
	for _, e := range entries {
		if clean, err := s.key.entry(e, b.paths); err == nil { // a cache inside Bawn's own directories is left out
			s.items = append(s.items, item{text: clean})
		}
	}
	return []setting{s}
}

// unlimited is the rank of a limit that nobody stated.
var unlimited = math.Inf(1)
