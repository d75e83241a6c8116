package undocli

import (
	"slices"

	"github.com/bawn-dev/bawn/internal/attach"
	"github.com/bawn-dev/bawn/internal/copies"
	"github.com/bawn-dev/bawn/internal/launch"
	"github.com/bawn-dev/bawn/internal/settings"
	"github.com/bawn-dev/bawn/internal/undo"
)

// Past is what sessions of this user have changed, and their copies, for the relay's page.
func Past(e *launch.Env) (*undo.Past, *copies.Reviewer, error) {
	state, err := settings.StateDir(&e.World)
	if err != nil {
		return nil, nil, err
	}
	registry := settings.RuntimeDir(&e.World, state)
	return &undo.Past{
		State: state, Own: launch.OwnDirs(e), Path: e.Getenv("PATH"), Writing: writing(registry),
		Publish: func(workspace string) error { return publish(e, workspace) },
	}, reviewer(e, state, registry), nil
}

// writing finds the sessions that write in one of some directories.
func writing(registry string) func(roots []string) ([]string, error) {
	return func(roots []string) (ids []string, err error) {
		_, err = attach.List(registry) // what can't be read may hold one
		for _, s := range launch.Writing(registry, "", roots) {
			ids = append(ids, s.ID)
		}
		return ids, err
	}
}

func reviewer(e *launch.Env, state, registry string) *copies.Reviewer {
	return &copies.Reviewer{
		State: state, Own: launch.OwnDirs(e), Path: e.Getenv("PATH"), Writing: writing(registry),
		Runs: func(session string) bool {
			list, _ := attach.List(registry)
			return slices.ContainsFunc(list, func(e attach.Entry) bool { return e.ID == session && e.State == attach.Running })
		},
		Forget: func(r *copies.Record) error { return forgetCommits(e, r) },
	}
}
