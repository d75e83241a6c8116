package secrets

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/strictjson"
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
	// Pending are values that a change wrote or is about to delete. A later change
	// that finds some cleans up after one that did not end.
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

// commit makes a name refer to a value that its store has.
func (idx *index) commit(r record, now time.Time) {
	idx.dropPending(r.ID)
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

func (idx *index) dropPending(id string) {
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
	var top struct {
		index
		Secrets []json.RawMessage `json:"secrets"`
	}
	if err := strictjson.Decode(data, &top); err != nil {
		return nil, indexError(file, lineOf(data, err), err)
	}
	*idx = top.index
	if idx.Version != indexNow {
		return nil, indexError(file, 1, fmt.Errorf("its version is %d; want %d: it was written by a newer bawn", idx.Version, indexNow))
	}
	for i, raw := range top.Secrets {
		var r record
		if err := strictjson.Decode(raw, &r); err != nil {
			return nil, indexError(file, lineOfRecord(data, top.Secrets, i)+lineOf(raw, err)-1, err)
		}
		idx.Secrets = append(idx.Secrets, r)
	}
	if i, err := idx.check(); err != nil {
		return nil, indexError(file, lineOfRecord(data, top.Secrets, i), err)
	}
	return idx, nil
}

func indexError(file string, line int, err error) error {
	return failure("mend the line, or move the file away and set the secrets anew", "%s:%d: %w", file, line, err)
}

// lineOf is the line of an error of strictjson.
func lineOf(data []byte, err error) int {
	var at *strictjson.Error
	if !errors.As(err, &at) {
		return 1
	}
	return lineAt(data, at.Offset)
}

func lineAt(data []byte, offset int64) int {
	return 1 + bytes.Count(data[:min(max(offset, 0), int64(len(data)))], []byte("\n"))
}

// check returns an error that names the first record that this package would not write.
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
	if r.ID[:strings.LastIndexByte(r.ID, '.')] != r.Name {
		return fmt.Errorf("the secret %q has the value %q, which is another one's", r.Name, r.ID)
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
	return lineAt(data, int64(min(at, len(data))))
}
