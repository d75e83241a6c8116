package native

import (
	"slices"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/linux/rawproc"
)

// A Preforked is the first process of a sandbox that nobody has planned yet. It
// makes its namespaces, of which the network's takes half as long as all that
// is planned meanwhile, and waits. It carries out our steps and nothing else,
// has no descriptor of the caller's beside the standard ones, and ends with the
// caller.
type Preforked struct {
	prog *program
	init *rawproc.Init
	gate rawproc.Gate
}

// ordinary are the namespaces of every session but those on the host's network.
var ordinary = []string{"user", "mount", "pid", "ipc", "uts", "cgroup", "net"}

// Prefork begins with the sandbox of a session that will probably be an ordinary
// one. It returns nil where that can't be: the start says why.
func Prefork() *Preforked {
	e := &Preforked{prog: newProgram()}
	e.prog.enter(unix.CLONE_NEWUSER|unix.CLONE_NEWPID, ordinary, true)
	e.gate = e.prog.Await("wait for the plan")
	var err error
	if e.init, err = rawproc.Begin(rawproc.Config{Namespaces: e.prog.namespaces, Program: &e.prog.Program, Alone: true}); err != nil {
		return nil
	}
	return e
}

// Abandon ends it, unless a sandbox was made of it. It may be called for nil, and
// more than once.
func (e *Preforked) Abandon() {
	if e != nil && e.init != nil {
		e.init.Kill()
		e.init = nil
	}
}

// become makes b of e, and reports whether e fits the plan. It is used up.
func (e *Preforked) become(b *build) bool {
	if e == nil || e.init == nil || !b.plan.Loopback || !slices.Equal(b.plan.Namespaces, ordinary) {
		e.Abandon()
		return false
	}
	b.prog, b.init, b.early = e.prog, e.init, true
	e.init = nil
	return true
}

// Adopt has the next sandbox made of e, if it fits. e may be nil.
func (p *Provider) Adopt(e *Preforked) { p.preforked = e }
