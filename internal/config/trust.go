package config

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/bawn-dev/bawn/internal/atomicfile"
	"github.com/bawn-dev/bawn/internal/fspath"
	"github.com/bawn-dev/bawn/internal/strictjson"
)

// A Trust says that the user has read one project file and lets it widen the
// settings of the layers before it. It holds for exactly these bytes at this
// path.
type Trust struct {
	Path   string    `json:"path"`   // without symbolic links
	SHA256 string    `json:"sha256"` // in lower-case hex
	At     time.Time `json:"at"`
	Widens []string  `json:"widens"` // its request when it was trusted
}

// trustStore is the content of the trust file.
type trustStore struct {
	Version int     `json:"version"` // 1
	Trusted []Trust `json:"trusted"`
}

// trustPath is where trust is kept: among what no session can see.
func (in Inputs) trustPath() string { return filepath.Join(in.State(), "trust.json") }

// Examine reads the project file of in.Workspace and says what trusting it would
// permit: an empty Widens means that there is nothing to trust. A file that is
// wrong in another way is an error, and so is a missing file.
func Examine(in Inputs) (Trust, error) {
	st, err := in.before()
	if err != nil {
		return Trust{}, err
	}
	at := Place{Layer: Project, File: filepath.Join(in.Workspace, ProjectFile)}
	data, err := readProject(in.Workspace)
	var t Trust
	switch {
	case err == nil && data == nil:
		err = fs.ErrNotExist
	case err == nil:
		t, err = newTrust(in.Workspace, data)
	}
	if err != nil {
		return Trust{}, asErrors(at, err)
	}
	var errs Errors
	if errors.As(st.clone().file(data, at, authority{layer: Project, untrusted: true}), &errs) && !errs.widening() {
		return Trust{}, errs
	}
	for _, e := range errs {
		t.Widens = append(t.Widens, fmt.Sprintf("line %d: %s", e.Place.Line, e.Widens))
	}
	return t, st.file(data, at, authority{layer: Project})
}

func newTrust(workspace string, data []byte) (Trust, error) {
	real, err := filepath.EvalSymlinks(workspace)
	sum := sha256.Sum256(data)
	return Trust{Path: filepath.Join(real, ProjectFile), SHA256: hex.EncodeToString(sum[:])}, err
}

// trusts reports whether these bytes are trusted as the workspace's file.
func (in Inputs) trusts(workspace string, data []byte) (bool, error) {
	want, err := newTrust(workspace, data)
	if err != nil {
		return false, err
	}
	list, err := Trusted(in)
	return slices.ContainsFunc(list, func(t Trust) bool { return t.Path == want.Path && t.SHA256 == want.SHA256 }), err
}

// Trusted lists what is trusted. A trust file that others could have written,
// or that can't be understood, trusts nothing and is an error.
func Trusted(in Inputs) ([]Trust, error) {
	path := in.trustPath()
	info, err := os.Stat(path)
	if absent(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("trust file %q has mode %04o; want 0600, so that only you can have written it", path, info.Mode().Perm())
	}
	data, err := atomicfile.Read(path, maxBytes)
	if err != nil {
		return nil, err
	}
	return parseTrust(path, data)
}

func parseTrust(path string, data []byte) ([]Trust, error) {
	var s trustStore
	if err := strictjson.Decode(data, &s); err != nil {
		return nil, fmt.Errorf("trust file %q: %w; remove it and trust again", path, err)
	}
	if s.Version != 1 {
		return nil, fmt.Errorf("trust file %q is not one of version 1; remove it and trust again", path)
	}
	for _, t := range s.Trusted {
		if sum, err := hex.DecodeString(t.SHA256); err != nil || len(sum) != sha256.Size || strings.ToLower(t.SHA256) != t.SHA256 || !fspath.Below(t.Path, "/") {
			return nil, fmt.Errorf("trust file %q has an entry without path or digest; remove it and trust again", path)
		}
	}
	return s.Trusted, nil
}

// Add trusts t from now on, in place of the earlier trust at its path.
func (t Trust) Add(in Inputs) error {
	return in.changeTrust(func(list []Trust) []Trust { return append(without(list, t.Path), t) })
}

// Forget ends the trust in the file at path; it reports whether there was any.
func Forget(in Inputs, path string) (bool, error) {
	found := false
	err := in.changeTrust(func(list []Trust) []Trust {
		rest := without(list, path)
		found = len(rest) < len(list)
		return rest
	})
	return found, err
}

func without(list []Trust, path string) []Trust {
	return slices.DeleteFunc(slices.Clone(list), func(t Trust) bool { return t.Path == path })
}

// changeTrust replaces the trust file, in a directory that is the user's alone.
func (in Inputs) changeTrust(change func([]Trust) []Trust) error {
	path := in.trustPath()
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if err == nil { // where it was there already, with another mode
		err = os.Chmod(filepath.Dir(path), 0o700)
	}
	if err != nil {
		return err
	}
	return atomicfile.Update(path, 0o600, maxBytes, func([]byte) ([]byte, error) {
		list, err := Trusted(in)
		if err != nil {
			return nil, err
		}
		// A trustStore can always be written as JSON.
		data, _ := json.MarshalIndent(trustStore{1, change(list)}, "", "  ")
		return append(data, '\n'), nil
	})
}
