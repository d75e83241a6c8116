package undocli

import (
	"github.com/bawn-dev/bawn/internal/attach"
	"github.com/bawn-dev/bawn/internal/launch"
	"github.com/bawn-dev/bawn/internal/settings"
	"github.com/bawn-dev/bawn/internal/undo"
)

// Past is what sessions of this user have changed, for the relay's page.
func Past(e *launch.Env) (*undo.Past, error) {
	state, err := settings.StateDir(&e.World)
	if err != nil {
		return nil, err
	}
	registry := settings.RuntimeDir(&e.World, state)
	return &undo.Past{
		State: state, Own: launch.OwnDirs(e), Path: e.Getenv("PATH"),
		Writing: func(roots []string) (ids []string, err error) {
			_, err = attach.List(registry) // what can't be read may hold one
			for _, s := range launch.Writing(registry, "", roots) {
				ids = append(ids, s.ID)
			}
			return ids, err
		},
		Publish: func(workspace string) error { return publish(e, workspace) },
	}, nil
}
