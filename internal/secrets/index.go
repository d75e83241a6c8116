package secrets

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/bawn-dev/bawn"
)

// indexName is the index's file in the configuration directory.
const indexName = "secrets.json"

const (
	maxIndex   = 4 << 20 // bytes
	maxSecrets = 10_000
	indexNow   = 1 // its version
)

// An index is what the vault knows without values.
type index struct {
	Version int        `json:"version"`
	Files   filesState `json:"files,omitzero"`
	// Pending are values that a change wrote or is about to delete: whoever
	// finds some cleans up after a change that did not end.
	Pending []leftover `json:"pending,omitempty"`
	Secrets []record   `json:"secrets"`
}

// filesState says what the encrypted files are encrypted to.
type filesState struct {
	Recipient string `json:"recipient,omitempty"` // of age: "age1…"
	Identity  string `json:"identity,omitempty"`  // the human's own identity file; "" is ours, with a passphrase
}

type leftover struct {
	Store string `json:"store"`
	ID    string `json:"id"`
}

type record struct {
	Name       string    `json:"name"`
	Store      string    `json:"store"`
	ID         string    `json:"id"` // of the value in the store
	Created    time.Time `json:"created"`
	Changed    time.Time `json:"changed"`
	SingleLine bool      `json:"single_line"` // may stand in a header
	Bindings   []binding `json:"bindings,omitempty"`
}

// A binding is a bawn.Binding as it is written down.
type binding struct {
	Host   string     `json:"host"`
	Place  bawn.Place `json:"place"`
	Name   string     `json:"name,omitempty"`
	File   string     `json:"file,omitempty"`
	Format string     `json:"format,omitempty"`
	Env    string     `json:"env,omitempty"`
}

func (b binding) of(secret string) bawn.Binding {
	return bawn.Binding{Secret: secret, Host: b.Host, Place: b.Place, Name: b.Name, File: b.File, Format: b.Format, Env: b.Env}
}

func (r *record) bindings() []bawn.Binding {
	out := make([]bawn.Binding, len(r.Bindings))
	for i, b := range r.Bindings {
		out[i] = b.of(r.Name)
	}
	return out
}

func (idx *index) find(name string) *record {
	for i := range idx.Secrets {
		if idx.Secrets[i].Name == name {
			return &idx.Secrets[i]
		}
	}
	return nil
}

// commit lets a name mean a value that is in its store now.
func (idx *index) commit(r record, now time.Time) {
	idx.settle(r.ID)
	now = now.UTC().Truncate(time.Second)
	r.Created, r.Changed = now, now
	if old := idx.find(r.Name); old != nil {
		idx.Pending = append(idx.Pending, leftover{old.Store, old.ID})
		r.Created, r.Bindings = old.Created, old.Bindings
		*old = r
		return
	}
	idx.Secrets = append(idx.Secrets, r)
	slices.SortFunc(idx.Secrets, func(a, b record) int { return strings.Compare(a.Name, b.Name) })
}

func (idx *index) remove(name string) {
	r := idx.find(name)
	idx.Pending = append(idx.Pending, leftover{r.Store, r.ID})
	idx.Secrets = slices.DeleteFunc(idx.Secrets, func(r record) bool { return r.Name == name })
}

func (idx *index) settle(id string) {
	idx.Pending = slices.DeleteFunc(idx.Pending, func(l leftover) bool { return l.ID == id })
}

// A stamp tells whether a file is still the one that was read.
type stamp struct {
	info fs.FileInfo
}

func (s stamp) same(info fs.FileInfo) bool {
	return s.info != nil && info != nil && os.SameFile(s.info, info) && s.info.Size() == info.Size() && s.info.ModTime().Equal(info.ModTime())
}

func (v *Vault) indexPath() string { return filepath.Join(v.opts.ConfigDir, indexName) }

// index returns what the index says now; the caller must not change it.
func (v *Vault) index() (*index, error) {
	info, err := os.Stat(v.indexPath())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("the vault's index: %w", err)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.cache != nil && v.seen.same(info) {
		return v.cache, nil
	}
	data, err := readOwn(v.indexPath(), maxIndex)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("the vault's index: %w", err)
	}
	idx, err := parseIndex(v.indexPath(), data)
	if err != nil {
		return nil, err
	}
	v.cache, v.seen = idx, stamp{info}
	v.dropStale(idx)
	return idx, nil
}

// dropStale zeroes values that no name means any more.
func (v *Vault) dropStale(idx *index) {
	for id, l := range v.held {
		if !slices.ContainsFunc(idx.Secrets, func(r record) bool { return r.ID == id }) {
			l.wipe()
			delete(v.held, id)
		}
	}
}

// parseIndex reads an index, strictly. No data is an empty one. Errors name
// the file and the line.
func parseIndex(file string, data []byte) (*index, error) {
	idx := &index{Version: indexNow}
	if len(data) == 0 {
		return idx, nil
	}
	if line, err := twice(data); err != nil {
		return nil, indexError(file, line, err)
	}
	var top struct {
		index
		Secrets []json.RawMessage `json:"secrets"`
	}
	if at, err := strictly(data, &top); err != nil {
		return nil, indexError(file, lineOf(data, at), err)
	}
	*idx = top.index
	if idx.Version != indexNow {
		return nil, indexError(file, 1, fmt.Errorf("its version is %d; want %d: it was written by a newer bawn", idx.Version, indexNow))
	}
	for i, raw := range top.Secrets {
		var r record
		if at, err := strictly(raw, &r); err != nil {
			return nil, indexError(file, lineOfRecord(data, top.Secrets, i)+lineOf(raw, at)-1, err)
		}
		idx.Secrets = append(idx.Secrets, r)
	}
	if i, err := idx.check(); err != nil {
		return nil, indexError(file, lineOfRecord(data, top.Secrets, i), err)
	}
	return idx, nil
}

// strictly decodes one value and nothing behind it. Where it fails it says at
// which offset, as far as encoding/json tells.
func strictly(data []byte, into any) (int64, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	err := dec.Decode(into)
	if err == nil {
		if _, err = dec.Token(); errors.Is(err, io.EOF) {
			return 0, nil
		}
		return dec.InputOffset(), errors.New("something follows the end")
	}
	if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		return int64(bytes.Index(data, []byte(name))), err
	}
	return errorOffset(dec, err), err
}

func indexError(file string, line int, err error) error {
	return failure("mend the line, or move the file away and set the secrets anew", "%s:%d: %w", file, line, err)
}

func errorOffset(dec *json.Decoder, err error) int64 {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		return syntax.Offset
	case errors.As(err, &kind):
		return kind.Offset
	case dec.InputOffset() > 0 && !errors.Is(err, io.ErrUnexpectedEOF):
		return 0 // what a type of ours refused: its place is not told
	}
	return dec.InputOffset()
}

func lineOf(data []byte, offset int64) int {
	return 1 + bytes.Count(data[:min(max(offset, 0), int64(len(data)))], []byte("\n"))
}

// twice finds a key that stands twice in one object, which encoding/json lets
// pass, and any error of the syntax.
func twice(data []byte) (int, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	var open []map[string]bool // of each object; nil for a list
	key := false
	for {
		t, err := dec.Token()
		switch {
		case errors.Is(err, io.EOF):
			return 0, nil
		case err != nil:
			return lineOf(data, errorOffset(dec, err)), err
		}
		if d, ok := t.(json.Delim); ok {
			switch d {
			case '{':
				open = append(open, map[string]bool{})
			case '[':
				open = append(open, nil)
			default:
				open = open[:len(open)-1]
			}
			key = len(open) > 0 && open[len(open)-1] != nil
			continue
		}
		if len(open) == 0 || open[len(open)-1] == nil {
			continue
		}
		if name, ok := t.(string); ok && key {
			if open[len(open)-1][name] {
				return lineOf(data, dec.InputOffset()), fmt.Errorf("the key %q stands here a second time", name)
			}
			open[len(open)-1][name] = true
		}
		key = !key
	}
}

// check holds the records to what this package writes, and says which is not.
func (idx *index) check() (int, error) {
	if len(idx.Secrets) > maxSecrets {
		return 0, fmt.Errorf("it has %d secrets; want %d at most", len(idx.Secrets), maxSecrets)
	}
	names, ids := map[string]bool{}, map[string]bool{}
	for i := range idx.Secrets {
		r := &idx.Secrets[i]
		err := r.check()
		switch {
		case err != nil:
			return i, err
		case names[r.Name]:
			return i, fmt.Errorf("the secret %q is there twice", r.Name)
		case ids[r.ID]:
			return i, fmt.Errorf("the value %q belongs to two secrets", r.ID)
		}
		names[r.Name], ids[r.ID] = true, true
	}
	for _, l := range idx.Pending {
		if err := checkID(l.Store, l.ID); err != nil || ids[l.ID] {
			return 0, fmt.Errorf("a pending value %q in %q is not one that was written here", l.ID, l.Store)
		}
	}
	return 0, nil
}

func (r *record) check() error {
	if err := checkName(r.Name); err != nil {
		return err
	}
	if err := checkID(r.Store, r.ID); err != nil {
		return fmt.Errorf("the secret %q: %w", r.Name, err)
	}
	seen := map[binding]bool{}
	for _, b := range r.Bindings {
		if err := checkBinding(b.of(r.Name)); err != nil {
			return err
		}
		if seen[b] {
			return fmt.Errorf("the secret %q is bound twice to %q", r.Name, b.Host)
		}
		seen[b] = true
	}
	if len(r.Bindings) > 0 && !r.SingleLine {
		return fmt.Errorf("the secret %q has control characters and is bound", r.Name)
	}
	return nil
}

// checkID accepts what newID makes; it becomes part of a file's name.
func checkID(store, id string) error {
	i := strings.LastIndexByte(id, '.')
	if (store != Keyring && store != File) || i < 0 || checkName(id[:i]) != nil || len(id[i+1:]) != 16 || strings.Trim(id[i+1:], "0123456789abcdef") != "" {
		return fmt.Errorf("the value %q in the store %q is not one that was written here", id, store)
	}
	return nil
}

// lineOfRecord finds the line on which the nth secret begins.
func lineOfRecord(data []byte, raw []json.RawMessage, n int) int {
	at := 0
	for i := range raw[:min(n+1, len(raw))] {
		at += max(bytes.Index(data[at:], raw[i]), 0)
		if i < n {
			at += len(raw[i])
		}
	}
	return lineOf(data, int64(min(at, len(data))))
}
