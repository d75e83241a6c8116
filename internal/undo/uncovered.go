package undo

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/bawn-dev/bawn/internal/atomicfile"
	"github.com/bawn-dev/bawn/internal/checkpoint"
	"github.com/bawn-dev/bawn/internal/fspath"
	"github.com/bawn-dev/bawn/internal/strictjson"
)

// consentName is the file beside a workspace's checkpoints in which the human's
// consent is kept.
const consentName = "consent.json"

const maxConsent = 4 << 20

// A Consent says what of a workspace sessions write though no checkpoint covers it.
type Consent struct {
	Workspace string   `json:"workspace"`
	Paths     []string `json:"paths"`          // absolute; what is below counts too
	Told      []string `json:"told,omitempty"` // what the human was told of
	// Last is what the last session's checkpoint did not cover.
	Last []checkpoint.Uncovering `json:"last,omitempty"`
}

// ReadConsent reads the consent for a workspace. Without a file it is empty.
func ReadConsent(state, workspace string) (*Consent, error) {
	c := &Consent{Workspace: workspace}
	b, err := atomicfile.Read(filepath.Join(checkpoint.Place(state, workspace), consentName), maxConsent)
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err == nil {
		err = strictjson.Decode(b, c)
	}
	if err == nil && c.Workspace != workspace {
		err = fmt.Errorf("it is about %q", c.Workspace)
	}
	if err != nil {
		return &Consent{Workspace: workspace}, fmt.Errorf("read what sessions may write without a checkpoint: %w", err)
	}
	return c, nil
}

// Write keeps the consent.
func (c *Consent) Write(state string) error {
	dir := checkpoint.Place(state, c.Workspace)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	b, err := json.Marshal(c)
	if err != nil {
		return err
	}
	return atomicfile.Write(filepath.Join(dir, consentName), append(b, '\n'), 0o600)
}

// Allow adds places.
func (c *Consent) Allow(paths ...string) {
	for _, p := range paths {
		if !c.covers(p) {
			c.Paths = append(c.Paths, p)
		}
	}
}

func (c *Consent) covers(path string) bool {
	return slices.ContainsFunc(c.Paths, func(p string) bool { return fspath.Below(path, p) })
}

// ReadOnly returns those of the uncovered places that sessions do not write.
func (c *Consent) ReadOnly(list []checkpoint.Uncovering) []checkpoint.Uncovering {
	return slices.DeleteFunc(slices.Clone(list), func(u checkpoint.Uncovering) bool { return c.covers(u.Path) })
}

// Untold returns those of which the human was not told, and notes them.
func (c *Consent) Untold(list []checkpoint.Uncovering) []checkpoint.Uncovering {
	var news []checkpoint.Uncovering
	for _, u := range list {
		if !slices.Contains(c.Told, u.Path) {
			news = append(news, u)
			c.Told = append(c.Told, u.Path)
		}
	}
	return news
}
