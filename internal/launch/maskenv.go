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

// workspaceSecrets says once which secrets of the workspace's files the guest reads, or
// shows it placeholders in their place (isolation.mask_env).
func (l *Launch) workspaceSecrets(e *Env, req *sandbox.Request) error {
	ws := req.Session.Isolation.Workspace
	if req.Session.Isolation.MaskEnv {
		return l.maskFiles(e, req, ws)
	}
	if l.Parent != nil || l.Plan {
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
	if news(e, "env-"+hex.EncodeToString(sum[:8]), text) {
		l.note(e, text)
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
func (l *Launch) maskFiles(e *Env, req *sandbox.Request, ws string) error {
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
	dir, err := l.maskDir(e, req.Session.ID)
	if err != nil {
		return &verb.Error{Code: verb.ExitInternal, Err: fmt.Errorf("make a place for masked files: %w", err)}
	}
	for i, f := range files {
		source := filepath.Join(dir, fmt.Sprint(i)+"-"+filepath.Base(f.Path))
		if err := os.WriteFile(source, f.Text, 0o400); err != nil {
			return &verb.Error{Code: verb.ExitInternal, Err: fmt.Errorf("write a masked file: %w", err)}
		}
		l.masks = append(l.masks, f.Masks...)
		l.maskedFiles = append(l.maskedFiles, sandbox.File{Source: source, Target: filepath.Join(ws, f.Path)})
	}
	req.Files = append(req.Files, l.maskedFiles...)
	return nil
}

// maskDir makes the place of the session's masked files, or of those of a plan.
func (l *Launch) maskDir(e *Env, id string) (_ string, err error) {
	if l.Plan {
		l.maskPlace, err = os.MkdirTemp("", "bawn-plan-env-")
		return l.maskPlace, err
	}
	state, err := settings.StateDir(&e.World)
	if err != nil {
		return "", err
	}
	l.maskPlace = filepath.Join(settings.RuntimeDir(&e.World, state), id+"-env")
	return l.maskPlace, os.Mkdir(l.maskPlace, 0o700)
}

// endMasks removes the masked files, which hold placeholders and what is no secret.
func (l *Launch) endMasks() {
	if l.maskPlace != "" {
		_ = os.RemoveAll(l.maskPlace) // nothing secret is left there
	}
}
