package launch

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/creack/pty"

	"github.com/bawn-dev/bawn/internal/egress/remote"
	"github.com/bawn-dev/bawn/internal/fspath"
	"github.com/bawn-dev/bawn/internal/intent"
	"github.com/bawn-dev/bawn/internal/session"
	"github.com/bawn-dev/bawn/internal/sessionsocket"
)

// maxToolNames is how many servers a guest may name.
const maxToolNames = 64

// Tools serves a guest's `bawn mcp`: a handler of its session socket. The gateway is no
// session of its own: its calls are the guest's, and are decided one by one.
func (k *children) Tools(ctx context.Context, c *sessionsocket.Conn, t intent.Tools, files [3]*os.File) {
	w := &childRequest{spec: session.Spec{Gateway: &session.Gateway{Servers: t.Servers}}, from: t.Dir}
	switch {
	case k.copied:
		c.Refuse(RuleChild, errCopied.Error(), "start the tool server as a command of this session")
		return
	case len(t.Servers) > maxToolNames:
		c.Refuse(RuleChild, fmt.Sprintf("it names more than %d servers", maxToolNames), "name none, for all of them")
		return
	case filepath.Clean(t.Dir) != t.Dir || !fspath.Below(t.Dir, k.parent.Session.Isolation.Workspace):
		c.Refuse(RuleChild, "the directory is outside of the workspace", "start it there")
		return
	}
	if k.running.Add(1) > maxChildren {
		k.running.Add(-1)
		c.Refuse(RuleChild, fmt.Sprintf("this session has %d others below it already", maxChildren), "wait for one of them to end")
		return
	}
	defer k.running.Add(-1)
	_ = sessionsocket.Attend(ctx, c, files, sessionsocket.Window{}, pty.Open, func(files [3]*os.File, _ bool) (sessionsocket.Program, error) {
		program, err := remote.Find()
		if err != nil {
			return nil, err
		}
		return k.launch(program, w, files)
	}) // the guest has been told
}
