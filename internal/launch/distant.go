package launch

import (
	"time"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/doctor"
	"github.com/bawn-dev/bawn/internal/egress/remote"
	"github.com/bawn-dev/bawn/internal/sandbox"
)

// AskWhole asks bawnd what a provider enforces that only bawnd has.
func (e *Env) AskWhole(name string, patience time.Duration) []bawn.Capability {
	path, err := remote.Find()
	if err != nil || e.Providers != nil {
		return doctor.Nothing(ErrNoBawnd.Error(), doctor.Install)
	}
	return doctor.Elsewhere(path, name, e.Dir, e.Environ, patience)
}

// A distant provider is one that only bawnd has, as far as its capabilities are
// asked about here.
type distant struct {
	sandbox.Provider // nil: nobody starts it
	name             string
	have             []bawn.Capability
}

func (p distant) Name() string                    { return p.name }
func (p distant) Capabilities() []bawn.Capability { return p.have }

// How says in one line how a capability is enforced, or why it is not.
func How(c bawn.Capability) string {
	switch {
	case c.How != "" && c.Why != "":
		return c.How + "; " + c.Why
	case c.How != "":
		return c.How
	}
	return c.Why
}
