package launch

import (
	"slices"
	"strings"
	"time"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/approval/asking"
	"github.com/bawn-dev/bawn/internal/guard"
	"github.com/bawn-dev/bawn/internal/judge"
	"github.com/bawn-dev/bawn/internal/policy/overlay"
	"github.com/bawn-dev/bawn/internal/runner"
	"github.com/bawn-dev/bawn/internal/shim"
)

// newJudge is that of a session socket.
func newJudge(e *Env, s *runner.Session, g guard.Guard) *judge.Judge {
	q := SessionQuestion(e, s)
	for _, kv := range s.Plan.Environ() {
		name, _, _ := strings.Cut(kv, "=")
		q.Names = append(q.Names, name)
	}
	inside := asking.Zone{Question: q, Covered: s.Covered, Contains: contains(s, "the guest keeps to its sandbox, whatever is answered")}
	files, hosts, commands := inside, inside, inside
	files.Decide = overlay.Places(s.Plan.Places())
	if s.Isolation.Network != bawn.NetworkFull {
		hosts.Decide = overlay.Later
	}
	if s.Split != nil {
		commands = s.Split.Zone
		commands.Decide, commands.Later = overlay.Later, true
	}
	return &judge.Judge{
		Session: s.Session, Guard: g, Prompter: s.Prompter, Now: time.Now, Twice: hasPrefix(s.Plan.Environ()),
		Zones: map[bawn.Kind]asking.Zone{bawn.Command: commands, bawn.Network: hosts, bawn.Filesystem: files, bawn.Tool: inside},
	}
}

// hasPrefix reports whether the guest's commands come to the session socket once more
// when they are executed.
func hasPrefix(environ []string) bool {
	return slices.Contains(environ, prefixVariable+"="+prefixInside)
}

// Where a guest finds the program through which its agent starts commands, and
// the variable that tells Claude Code of it.
const (
	prefixInside   = "/run/bawn/" + shim.PrefixName
	prefixVariable = "CLAUDE_CODE_SHELL_PREFIX"
)
