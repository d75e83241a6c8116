package secrets

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/bawn-dev/bawn"
)

// MaxValue is the largest value in bytes.
const MaxValue = 64 << 10

// Stores, as the index and Options.Store name them.
const (
	Keyring = "keyring" // Secret Service, or the macOS Keychain
	File    = "file"    // files encrypted with age
)

// ErrNotFound says that the vault has no secret of that name.
var ErrNotFound = errors.New("no such secret")

// An Error is an error with a hint for the user on how to mend it.
type Error struct {
	Err  error
	Hint string
}

func (e *Error) Error() string { return e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// failure returns an Error.
func failure(hint, format string, args ...any) error {
	return &Error{Err: fmt.Errorf(format, args...), Hint: hint}
}

// Options say where a vault is and how it may be opened. The zero Options are
// refused.
type Options struct {
	ConfigDir string   // holds the index; absolute, made if missing
	StateDir  string   // holds the encrypted files in "vault"; absolute, made if missing
	Environ   []string // of this very process: says whether there is a session bus
	Store     string   // for new secrets: Keyring, File, or "" for the first that is there
	// Identity is the path of an age identity file that opens the encrypted files. It
	// belongs to the user and has mode 0600. If it is "", the index names the file, or
	// a passphrase opens the vault's own identity.
	Identity string
	// Passphrase returns the passphrase; it is called at most once, and its answer is
	// zeroed after use. anew is set when a new vault is made. Nil means that the
	// process can't ask the user.
	Passphrase func(anew bool) ([]byte, error)
	Now        func() time.Time
	// Wait limits one call of the keyring, which may ask the user; 0 means two minutes.
	Wait time.Duration

	work    int            // scrypt's cost as log2; 0 is age's own
	keyring func() keeping // in place of the system's; tests only
}

// keeping is a store of values by id. An id is never used again.
type keeping interface {
	put(ctx context.Context, id string, value []byte) error
	get(ctx context.Context, id string) ([]byte, error) // the caller zeroes it
	drop(ctx context.Context, id string) error          // nil where it is not there
}

// A Vault keeps secrets. It is safe for concurrent use, also by several
// processes.
type Vault struct {
	opts    Options
	load    sync.Mutex // held while a store is read
	mu      sync.Mutex
	held    map[string]*locked // values in use, by id
	seen    stamp              // of the index in cache
	cache   *index
	files   *ageFiles
	keyring keeping
	notes   []string
	used    map[string]time.Time // when a use was last noted, by id
}

var _ bawn.SecretSource = (*Vault)(nil)

// Open returns the vault in the directories of o. It reads the index and returns an
// error if it can't parse it. It opens no store and asks for no passphrase yet.
func Open(o Options) (*Vault, error) {
	if !filepath.IsAbs(o.ConfigDir) || !filepath.IsAbs(o.StateDir) || o.Now == nil {
		return nil, fmt.Errorf("the vault's places are %q and %q; want absolute paths, and a clock", o.ConfigDir, o.StateDir)
	}
	if o.Store != "" && o.Store != Keyring && o.Store != File {
		return nil, fmt.Errorf("the store is %q; want %q or %q", o.Store, Keyring, File)
	}
	if o.Wait == 0 {
		o.Wait = 2 * time.Minute
	}
	v := &Vault{opts: o, held: map[string]*locked{}, used: map[string]time.Time{}}
	v.files = &ageFiles{dir: filepath.Join(o.StateDir, "vault"), opts: &v.opts}
	v.keyring = bounded{systemKeyring{o.Environ}, o.Wait}
	if o.keyring != nil {
		v.keyring = bounded{o.keyring(), o.Wait}
	}
	_, err := v.index()
	return v, err
}

// IdentityFile returns the file outside the vault that opens it, or "" if the vault
// has no such file. Everybody who can read this file and the vault can read every
// value.
func (v *Vault) IdentityFile() (string, error) {
	if v.opts.Identity != "" {
		return v.opts.Identity, nil
	}
	idx, err := v.index()
	if err != nil {
		return "", err
	}
	return idx.Files.Identity, nil
}

// An Entry describes a secret without its value.
type Entry struct {
	Name     string         `json:"name"`
	Store    string         `json:"store"`
	Created  time.Time      `json:"created"`
	Changed  time.Time      `json:"changed"`
	Used     time.Time      `json:"used,omitzero"` // the last time it was lent, to a minute
	Bindings []bawn.Binding `json:"bindings"`
}

// List returns all entries by name.
func (v *Vault) List() ([]Entry, error) {
	idx, err := v.index()
	if err != nil {
		return nil, err
	}
	out := make([]Entry, 0, len(idx.Secrets))
	for _, r := range idx.Secrets {
		out = append(out, Entry{r.Name, r.Store, r.Created, r.Changed, v.lastUse(r.ID), r.bindings()})
	}
	return out, nil
}

// Set stores value under name: in the store that already has the name, or else in that
// of Options. The value is durable when Set returns. If Set fails, or the process dies,
// the name keeps its earlier value.
func (v *Vault) Set(ctx context.Context, name string, value bawn.Secret) error {
	if err := checkName(name); err != nil {
		return err
	}
	if err := checkValue(value.Reveal()); err != nil {
		return fmt.Errorf("the value of %q: %w", name, err)
	}
	idx, err := v.index()
	if err != nil {
		return err
	}
	store, err := v.storeFor(ctx, idx, name)
	if err != nil {
		return err
	}
	id, err := newID(name)
	if err != nil {
		return err
	}
	plain := singleLine(value.Reveal())
	_, err = v.change(ctx, func(idx *index) error {
		if r := idx.find(name); r != nil && len(r.Bindings) > 0 && !plain {
			return failure("unbind it first, or keep the value under another name", "the value of %q has control characters, and %q is bound to a place in a request", name, name)
		}
		if r := idx.find(name); r != nil {
			if err := needsKey(r, value.Reveal()); err != nil {
				return err
			}
		}
		if err := v.begin(idx, store, id); err != nil {
			return err
		}
		if err := v.keeping(store).put(ctx, id, value.Reveal()); err != nil {
			return fmt.Errorf("keep %q: %w", name, err)
		}
		idx.commit(record{Name: name, Store: store, ID: id, SingleLine: plain}, v.opts.Now())
		return nil
	})
	return err
}

// storeFor returns the store for name and opens it, so that questions to the user come
// before the index is locked.
func (v *Vault) storeFor(ctx context.Context, idx *index, name string) (string, error) {
	store := v.opts.Store
	if r := idx.find(name); store == "" && r != nil {
		store = r.Store
	}
	if store == "" {
		there, err := v.keyringThere(ctx)
		if err != nil {
			return "", err
		}
		store = map[bool]string{true: Keyring, false: File}[there]
	}
	if store == File {
		return store, v.prepareFiles(idx)
	}
	return store, nil
}

func (v *Vault) keyringThere(ctx context.Context) (bool, error) {
	if v.opts.keyring != nil {
		return true, nil
	}
	return keyringThere(ctx, v.opts.Environ, v.opts.Wait)
}

func (v *Vault) keeping(store string) keeping {
	if store == Keyring {
		return v.keyring
	}
	return v.files
}

// Get returns the value of name. The Secret is the vault's own memory: it
// turns to zeros when the vault is closed or the secret removed.
func (v *Vault) Get(ctx context.Context, name string) (bawn.Secret, error) {
	idx, err := v.index()
	if err != nil {
		return bawn.Secret{}, err
	}
	r := idx.find(name)
	if r == nil {
		return bawn.Secret{}, unknown(idx, name)
	}
	return v.value(ctx, idx, r)
}

// value returns a record's value and caches it.
func (v *Vault) value(ctx context.Context, idx *index, r *record) (bawn.Secret, error) {
	if l := v.holds(r.ID); l != nil {
		return bawn.NewSecret(l.bytes), nil
	}
	v.load.Lock()
	defer v.load.Unlock()
	if l := v.holds(r.ID); l != nil {
		return bawn.NewSecret(l.bytes), nil
	}
	if r.Store == File {
		if err := v.files.use(idx.Files); err != nil {
			return bawn.Secret{}, fmt.Errorf("read %q: %w", r.Name, err)
		}
	}
	raw, err := v.keeping(r.Store).get(ctx, r.ID)
	if err != nil {
		return bawn.Secret{}, fmt.Errorf("read %q: %w", r.Name, err)
	}
	defer clear(raw)
	if err := checkValue(raw); err != nil || r.SingleLine && !singleLine(raw) {
		return bawn.Secret{}, failure("set it again: bawn secret set "+r.Name, "the value of %q in the %s is not one that was written here", r.Name, r.Store)
	}
	return bawn.NewSecret(v.hold(r.ID, raw).bytes), nil
}

func (v *Vault) holds(id string) *locked {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.held[id]
}

func (v *Vault) hold(id string, value []byte) *locked {
	l, note := lockedCopy(value)
	v.mu.Lock()
	defer v.mu.Unlock()
	v.note(note)
	v.held[id] = l
	return l
}

// Remove deletes a secret, its value and its bindings. If the value can't be deleted
// from its store, the name is gone all the same and the error says so. The next change
// of the vault tries again.
func (v *Vault) Remove(ctx context.Context, name string) error {
	id := ""
	left, err := v.change(ctx, func(idx *index) error {
		r := idx.find(name)
		if r == nil {
			return unknown(idx, name)
		}
		id = r.ID
		idx.remove(name)
		return nil
	})
	if err != nil {
		return err
	}
	return left[id]
}

// Notes returns, once each, how this machine protects values less than the package
// promises, for example that swap may see them.
func (v *Vault) Notes() []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Clone(v.notes)
}

func (v *Vault) note(text string) {
	if text != "" && !slices.Contains(v.notes, text) {
		v.notes = append(v.notes, text)
	}
}

// Close zeroes every value that the vault has returned. Later calls load values again.
func (v *Vault) Close() {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, l := range v.held {
		l.wipe()
	}
	clear(v.held)
	v.files.forget()
}

func unknown(idx *index, name string) error {
	var names []string
	for _, r := range idx.Secrets {
		names = append(names, r.Name)
	}
	hint := "there are none yet; make one with: bawn secret set " + name
	if len(names) > 0 {
		hint = "there are " + strings.Join(names[:min(len(names), 20)], ", ")
	}
	return failure(hint, "%q: %w", name, ErrNotFound)
}

// newID returns the id of a new value: the name, for the human who looks into
// the keyring, and what makes it unique.
func newID(name string) (string, error) {
	b := make([]byte, 8)
	if _, err := rand.Read(b); err != nil {
		return "", err
	}
	return name + "." + hex.EncodeToString(b), nil
}

// useStep is how exact a last use is.
const useStep = time.Minute

func (v *Vault) useFile(id string) string { return filepath.Join(v.opts.StateDir, "vault", "used", id) }

// lastUse is when the secret was last used: the modification time of an empty file.
// It is zero if the file does not exist.
func (v *Vault) lastUse(id string) time.Time {
	if info, err := os.Lstat(v.useFile(id)); err == nil {
		return info.ModTime()
	}
	return time.Time{}
}

// noteUse remembers that a value was lent. It is a convenience for the human:
// the log of the session is what counts, so a failure stops nothing.
func (v *Vault) noteUse(id string) {
	now, path := v.opts.Now(), v.useFile(id)
	v.mu.Lock()
	recent := now.Sub(v.used[id]) < useStep
	v.used[id] = now
	v.mu.Unlock()
	if recent {
		return
	}
	err := os.Chtimes(path, now, now)
	if errors.Is(err, fs.ErrNotExist) && os.MkdirAll(filepath.Dir(path), 0o700) == nil && os.WriteFile(path, nil, 0o600) == nil {
		_ = os.Chtimes(path, now, now)
	}
}
