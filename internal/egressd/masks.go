package egressd

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/egress"
	"github.com/bawn-dev/bawn/internal/secrets"
)

// A pointer is a variable that leads a client to its file where the usual
// place does not exist: to the file, or to the directory that holds it.
type pointer struct {
	variable string
	dir      bool
}

var pointers = map[string]pointer{
	"npmrc": {"NPM_CONFIG_USERCONFIG", false}, "kubeconfig": {"KUBECONFIG", false}, "pip": {"PIP_CONFIG_FILE", false},
	"aws": {"AWS_SHARED_CREDENTIALS_FILE", false},
	"gh":  {"GH_CONFIG_DIR", true}, "docker": {"DOCKER_CONFIG", true},
}

// placeMasks shows the guest its placeholders: in the files in which clients
// look for credentials, and in variables.
func (s *session) placeMasks() error {
	masks, env, notes, err := secrets.Masks(s.bindings, s.config.Home)
	if err != nil {
		return err
	}
	s.ready.Env = append(s.ready.Env, env...)
	s.ready.Notes = append(s.ready.Notes, notes...)
	for i, m := range masks {
		if err := s.placeMask(strconv.Itoa(i), m); err != nil {
			return err
		}
	}
	return s.hideIdentity()
}

// hideIdentity hides the vault's own key from the guest.
func (s *session) hideIdentity() error {
	if s.vault == nil {
		return nil
	}
	file, err := s.vault.IdentityFile()
	if err != nil || file == "" {
		return err
	}
	empty, err := s.put("identity", nil)
	if err == nil {
		s.cover(empty, file)
	}
	return err
}

func (s *session) placeMask(number string, m secrets.Mask) error {
	name := filepath.Join("masks", number, filepath.Base(m.Target))
	source, err := s.put(name, m.Content)
	if err != nil {
		return err
	}
	if err := os.Chmod(source, m.Mode); err != nil {
		return err
	}
	target, err := filepath.EvalSymlinks(m.Target)
	if errors.Is(err, fs.ErrNotExist) {
		return s.pointTo(source, path.Join(inGuest, filepath.ToSlash(name)), m.Target)
	}
	if err != nil {
		return fmt.Errorf("the file that hides a secret can't be placed: %w", err)
	}
	s.ready.Files = append(s.ready.Files, egress.File{Source: source, Target: target})
	return nil
}

// pointTo places a file where nothing is in the way, and says so to its client:
// no file can be made in a home directory that the guest only reads.
func (s *session) pointTo(source, target, usual string) error {
	p, ok := pointers[s.format(usual)]
	if !ok {
		return fmt.Errorf("%q does not exist, so nothing can be shown in its place; create it empty (touch %q)", usual, usual)
	}
	s.ready.Files = append(s.ready.Files, egress.File{Source: source, Target: target})
	if p.dir {
		target = path.Dir(target)
	}
	s.ready.Env = append(s.ready.Env, p.variable+"="+target)
	return nil
}

// format is the one in which a file is written.
func (s *session) format(target string) string {
	for _, b := range s.bindings {
		if expandHome(b, s.config.Home) == target {
			kind, _, _ := strings.Cut(b.Format, ":")
			return kind
		}
	}
	return ""
}

func expandHome(b bawn.Binding, home string) string {
	if len(b.File) > 1 && b.File[:2] == "~/" {
		return filepath.Join(home, b.File[2:])
	}
	return b.File
}
