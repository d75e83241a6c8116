package launch

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/bawn-dev/bawn/internal/attach"
	"github.com/bawn-dev/bawn/internal/sessionsocket"
)

const (
	// justMade is how old a file there is when its session is in the registry.
	justMade = time.Minute
	// answering is how old a socket is when somebody listens at it.
	answering = 2 * time.Second
)

// SweepSockets removes the sockets of sessions that were killed: files that begin
// as no living session's ID does. The registry may not have a session yet that is
// just made.
func SweepSockets(dir string, sessions []attach.Entry) {
	files, _ := os.ReadDir(dir) // there is nothing to sweep then
	for _, f := range files {
		id, _, _ := strings.Cut(f.Name(), ".")
		info, err := f.Info()
		if err != nil || f.IsDir() || len(id) < AsksName {
			continue
		}
		path, age := filepath.Join(dir, f.Name()), time.Since(info.ModTime())
		of := func(s attach.Entry) bool { return strings.HasPrefix(s.ID, id) }
		at := slices.IndexFunc(sessions, of)
		known, alive := at >= 0, at >= 0 && sessions[at].State != attach.Dead
		if !alive && age > answering {
			endOrphans(path)
		}
		if !alive && (known || age > justMade || age > answering && sessionsocket.Refuses(path)) {
			_ = os.Remove(path) // or the next one does
		}
	}
}
