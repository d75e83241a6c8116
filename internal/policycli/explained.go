package policycli

import (
	"cmp"
	"encoding/json"

	"github.com/bawn-dev/bawn/internal/launch"
)

// An Explained is what "bawn policy explain" is asked. All but Action may be "".
type Explained struct {
	Action, Kind, Operation string
	Dir, Workspace, Mode    string
	Contained               bool
}

// Explain returns what "bawn policy explain --json" prints, by the policy in
// force now. It runs and records nothing.
func Explain(e *launch.Env, x Explained) ([]byte, error) {
	d, err := newDecider(e, situation{Cwd: x.Dir, Workspace: x.Workspace, Mode: x.Mode, Contained: x.Contained})
	if err != nil {
		return nil, err
	}
	out, err := d.explain(cmp.Or(x.Kind, "command"), x.Operation, []string{x.Action})
	if err != nil {
		return nil, err
	}
	return json.Marshal(out.json())
}
