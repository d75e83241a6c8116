package launch

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/bawn-dev/bawn/internal/dotenv"
	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/settings"
	"github.com/bawn-dev/bawn/internal/verb"
)

// maskedFiles are the workspace's files of which the guest sees copies without secrets.
type maskedFiles struct {
	masks []dotenv.Mask
	files []sandbox.File
	place string // directory of the copies
}

// workspaceSecrets says once which secrets of the workspace's files the guest reads, or
// shows it placeholders in their place (isolation.mask_env).
func (p *gatherer) workspaceSecrets(req *sandbox.Request) error {
	ws := req.Session.Isolation.Workspace
	if req.Session.Isolation.MaskEnv {
		return p.maskFiles(req, ws)
	}
	if p.Parent != nil || p.Plan {
		return nil
	}
	var names []string
	for _, k := range dotenv.Workspace(ws) {
		names = append(names, k.Name)
	}
	if len(names) == 0 {
		return nil
	}
	text := "the guest can read the secrets of " + listed(names) + "; --mask-env shows it placeholders"
	sum := sha256.Sum256([]byte(ws))
	if news(p.env, "env-"+hex.EncodeToString(sum[:8]), text) {
		p.note(p.env, text)
	}
	return nil
}

// maxNamed is how many names a note has.
const maxNamed = 8

func listed(names []string) string {
	if more := len(names) - maxNamed; more > 0 {
		return strings.Join(names[:maxNamed], ", ") + fmt.Sprintf(" and %d more", more)
	}
	return strings.Join(names, ", ")
}

// maskFiles shows each file with placeholders, which can't be written then.
func (p *gatherer) maskFiles(req *sandbox.Request, ws string) error {
	if req.Session.Isolation.DockerAPI {
		return verb.Usage("leave one of them out", "containers (--docker) would read the secrets that --mask-env hides from this session")
	}
	files, err := dotenv.MaskAll(ws)
	if err != nil {
		return &verb.Error{Code: verb.ExitUsage, Err: fmt.Errorf("the secrets of %q can't be masked: %w", ws, err), Hint: "move the files away, or start with --mask-env=off, where the guest reads them"}
	}
	if len(files) == 0 {
		return nil
	}
	place, err := p.maskPlace(req.Session.ID)
	m := &maskedFiles{place: place}
	p.masked = m
	if err != nil {
		return &verb.Error{Code: verb.ExitInternal, Err: fmt.Errorf("make a place for masked files: %w", err)}
	}
	for i, f := range files {
		source := filepath.Join(place, fmt.Sprint(i)+"-"+filepath.Base(f.Path))
		if err := os.WriteFile(source, f.Text, 0o400); err != nil {
			return &verb.Error{Code: verb.ExitInternal, Err: fmt.Errorf("write a masked file: %w", err)}
		}
		m.masks = append(m.masks, f.Masks...)
		m.files = append(m.files, sandbox.File{Source: source, Target: filepath.Join(ws, f.Path)})
	}
	req.Files = append(req.Files, m.files...)
	return nil
}

// maskPlace makes the place of the session's masked files, or of those of a plan.
func (p *gatherer) maskPlace(id string) (string, error) {
	if p.Plan {
		return os.MkdirTemp("", "bawn-plan-env-")
	}
	state, err := settings.StateDir(&p.env.World)
	if err != nil {
		return "", err
	}
	place := filepath.Join(settings.RuntimeDir(&p.env.World, state), id+"-env")
	return place, os.Mkdir(place, 0o700)
}

// list returns the files, with the names of the masked variables.
func (m *maskedFiles) list() ([]sandbox.File, []dotenv.Mask) {
	if m == nil {
		return nil, nil
	}
	return m.files, m.masks
}

// end removes the masked files, which hold placeholders and ordinary values.
func (m *maskedFiles) end() {
	if m != nil && m.place != "" {
		_ = os.RemoveAll(m.place) // nothing secret is left there
	}
}
