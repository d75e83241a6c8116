package plugin

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/bawn-dev/bawn/internal/atomicfile"
)

// maxKept bounds the stored tools of one plugin, in bytes.
const maxKept = 32 << 20

func kept(dir, plugin string) string { return filepath.Join(dir, plugin+".tools") }

// Keep writes the tools that are pinned, as they were listed, beside the pins:
// with them the tools are known before the server runs. Tools that are not as p
// pins them are left out.
func (p Pins) Keep(dir string, listed []Tool) error {
	if err := CheckPlugin(p.Plugin); err != nil {
		return err
	}
	keep := slices.DeleteFunc(slices.Clone(listed), func(t Tool) bool {
		digest, err := Digest(t)
		want, pinned := p.digest(t.Name)
		return err != nil || !pinned || digest != want
	})
	text, err := json.Marshal(keep)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return atomicfile.Write(kept(dir, p.Plugin), text, 0o600)
}

// Kept reads what Keep wrote. Without a file, or without pins, it is empty. It is
// an error, and nothing is returned, unless each tool that is pinned is there
// with the digest of its pin, and no other.
func (p Pins) Kept(dir string) ([]Tool, error) {
	if err := CheckPlugin(p.Plugin); err != nil {
		return nil, err
	}
	text, err := atomicfile.Read(kept(dir, p.Plugin), maxKept)
	if errors.Is(err, fs.ErrNotExist) || len(p.Tools) == 0 {
		return nil, nil
	}
	var tools []Tool
	if err == nil {
		tools, err = parseKept(text)
	}
	if err == nil {
		if c := Compare(p, tools); len(c) > 0 {
			err = fmt.Errorf("the tool %.64q: %s", c[0].Tool, c[0].Why)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%q does not hold the tools that were pinned: %w; pin them anew", kept(dir, p.Plugin), err)
	}
	return tools, nil
}

// parseKept reads what Keep writes and nothing else, to the letter: so there is
// nothing that two readers could read in two ways.
func parseKept(text []byte) (tools []Tool, err error) {
	if err := json.Unmarshal(text, &tools); err != nil {
		return nil, err
	}
	if again, err := json.Marshal(tools); err != nil || !bytes.Equal(again, text) {
		return nil, errors.New("it is not as it was written")
	}
	return tools, nil
}

// Listed is the tool as a server lists it, with what its digest is over and no
// more.
func (t Tool) Listed() (json.RawMessage, error) { return t.canonical() }

// forgetKept removes what Keep has written.
func forgetKept(dir, plugin string) error {
	err := os.Remove(kept(dir, plugin))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
