package inside

import (
	"github.com/bawn-dev/bawn/internal/executor"
	"github.com/bawn-dev/bawn/internal/sandbox"
)

// A process is a command of a guest, as sandbox.Process has it.
type process struct {
	*executor.Process
	changes sandbox.ChangeList
}

// follow hands on what becomes of p. The sandbox ends with the last command.
func (g *Guest) follow(p *executor.Process, last bool) sandbox.Process {
	list := &process{p, sandbox.NewChangeList()}
	go func() {
		defer list.changes.End()
		for ch := range p.Changes() {
			if ch.Ended() || ch.Status.Stopped() {
				list.changes.Put(sandbox.Change{Stopped: ch.Status.Stopped(), Status: ch.Status})
			}
			if ch.Ended() && last { // who hears that the guest is done finds out why
				g.End()
			}
		}
	}()
	return list
}

// Changes delivers stops and the end.
func (p *process) Changes() <-chan sandbox.Change { return p.changes.Changes() }
