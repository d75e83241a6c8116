package launch

import (
	"slices"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/atomicfile"
	"github.com/bawn-dev/bawn/internal/egress"
	"github.com/bawn-dev/bawn/internal/settings"
)

// current are the rules that people have written, as they are now, for all that decides
// in the session.
func (l *Launch) current(e *Env, workspace string) *settings.CurrentRules {
	if l.rules == nil {
		l.rules = settings.NewCurrentRules(&e.World, workspace, func(text string) { l.note(e, text) })
	}
	return l.rules
}

// networkRules are the rules by which a session's network is decided, with the answers
// that have become rules.
func (l *Launch) networkRules(e *Env, workspace string) (egress.Rules, error) {
	current := l.current(e, workspace)
	written, err := current.Written()
	if err != nil {
		return egress.Rules{}, err
	}
	approved, err := settings.ApprovedRules(&e.World)
	return egress.Rules{Rules: slices.Concat(written, approved), Settling: current.Settling()}, err
}

// rulesOf is networkRules for a relay that runs.
func (l *Launch) rulesOf(e *Env, workspace string) egress.Rules {
	rules, err := l.networkRules(e, workspace)
	if err != nil {
		return egress.Rules{Failed: err.Error()}
	}
	return rules
}

// watched are the files of rules as they are now.
func watched(e *Env, workspace string) (files []egress.Watched) {
	paths := []string{}
	for _, f := range settings.PolicyFiles(&e.World, workspace) {
		paths = append(paths, f.Path)
	}
	if f, err := settings.GrantsFile(&e.World); err == nil {
		paths = append(paths, f.Path())
	}
	for _, path := range paths {
		files = append(files, egress.Watched{Path: path, Stamp: atomicfile.StampOf(path)})
	}
	return files
}

// WrittenRules are all rules except those made by answers.
func WrittenRules(e *Env, workspace string) ([]bawn.Rule, error) {
	return settings.NewCurrentRules(&e.World, workspace, nil).Written()
}
