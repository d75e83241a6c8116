package cli

import (
	"time"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/config"
	"github.com/bawn-dev/bawn/internal/doctor"
	"github.com/bawn-dev/bawn/internal/egress/remote"
	"github.com/bawn-dev/bawn/internal/sandbox"
)

// askWhole has bawnd say what a provider enforces that only bawnd has.
func (e *Env) askWhole(name string, patience time.Duration) []bawn.Capability {
	path, err := remote.Find()
	if err != nil || e.Providers != nil {
		return doctor.Nothing(errNoBawnd.Error(), doctor.Install)
	}
	return doctor.Elsewhere(path, name, e.Dir, e.Environ, patience)
}

// engine says whether guests may create containers with this machine's container
// engine. It returns nil if nothing can be said about the engine.
func (e *Env) engine(patience time.Duration) *doctor.Check {
	if e.CheckEngine == nil {
		path, err := remote.Find()
		if err != nil || e.Providers != nil {
			return nil
		}
		return doctor.EngineElsewhere(path, e.Dir, e.Environ, patience)
	}
	s := setting(e, nil)
	if in, err := inputsHere(e); err == nil {
		s.Config, _ = config.Load(in) // the session says what is wrong with it
	}
	return e.CheckEngine(ContainerSetting{Environ: s.Environ(), Config: s.Config, Cache: s.Cache(trialName)})
}

// printCapabilities answers askWhole.
func (e *Env) printCapabilities(name string) error {
	s := setting(e, nil)
	if in, err := inputsHere(e); err == nil {
		s.Config, _ = config.Load(in) // the session says what is wrong with it
	}
	p, known := e.find(name, s)
	if p == nil {
		return usageError("see \"bawn doctor\"", "provider %q is not part of this program; it is known: %v", name, known)
	}
	return writeJSON(e.Stdout, e.tried(name, p, s))
}

// A distant provider is one that only bawnd has, as far as it is asked here
// what it could do.
type distant struct {
	sandbox.Provider // nil: nobody starts it
	name             string
	have             []bawn.Capability
}

func (p distant) Name() string                    { return p.name }
func (p distant) Capabilities() []bawn.Capability { return p.have }
