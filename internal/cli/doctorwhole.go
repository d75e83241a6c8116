package cli

import (
	"time"

	"github.com/bawn-dev/bawn/internal/config"
	"github.com/bawn-dev/bawn/internal/doctor"
	"github.com/bawn-dev/bawn/internal/egress/remote"
	"github.com/bawn-dev/bawn/internal/launch"
	"github.com/bawn-dev/bawn/internal/settings"
	"github.com/bawn-dev/bawn/internal/verb"
)

// engineCheck says whether guests may create containers with this machine's container
// engine. It returns nil if nothing can be said about the engine.
func engineCheck(e *launch.Env, patience time.Duration) *doctor.Check {
	if e.CheckEngine == nil {
		path, err := remote.Find()
		if err != nil || e.Providers != nil {
			return nil
		}
		return doctor.EngineElsewhere(path, e.Dir, e.Environ, patience)
	}
	s := launch.SettingOf(e, nil)
	if in, err := settings.InputsHere(&e.World); err == nil {
		s.Config, _ = config.Load(in) // the session reports the error
	}
	return e.CheckEngine(launch.ContainerSetting{Environ: s.Environ(), Config: s.Config, Cache: s.Cache(launch.TrialName)})
}

// printCapabilities answers askWhole.
func printCapabilities(e *launch.Env, name string) error {
	s := launch.SettingOf(e, nil)
	if in, err := settings.InputsHere(&e.World); err == nil {
		s.Config, _ = config.Load(in) // the session reports the error
	}
	p, known := e.Find(name, s)
	if p == nil {
		return verb.Usage("see \"bawn doctor\"", "provider %q is not part of this program; it is known: %v", name, known)
	}
	return verb.WriteJSON(e.Stdout, capabilitiesOf(e, name, p, s))
}
