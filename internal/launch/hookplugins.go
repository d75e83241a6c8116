package launch

import (
	"time"

	"github.com/bawn-dev/bawn/internal/plugin"
	"github.com/bawn-dev/bawn/internal/pluginhook"
)

// hookStarting is how much longer a hook plugin's first answer may take: its
// sandbox is made before.
const hookStarting = 15 * time.Second

// hookPlugins are asked about the actions of a session; may be nil. Programs started
// in a sandbox without a session socket are judged by the session around it.
func (l *Launch) hookPlugins(e *Env, workspace string) *pluginhook.Set {
	if l.Plugin || Inside(e) != "" {
		return nil
	}
	return pluginhook.NewSet(func() ([]pluginhook.Options, error) {
		dirs, err := plugin.DirsOf(e.Getenv)
		if err != nil {
			return nil, err
		}
		all, err := plugin.Hooks(dirs.Manifests)
		if err != nil {
			l.note(e, "what the policy does not deny is denied: "+err.Error())
			return nil, err
		}
		var list []pluginhook.Options
		for _, m := range all {
			h := m.Hook.Filled()
			list = append(list, pluginhook.Options{
				Name: m.Name, Kinds: h.Kinds, Patience: h.Patience(), Starting: hookStarting, Now: time.Now,
				Note:  func(text string) { l.note(e, text) },
				Start: func() (pluginhook.Process, error) { return e.startHook(dirs, m, workspace) },
			})
		}
		return list, nil
	})
}
