package secrets

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"filippo.io/age"

	"github.com/bawn-dev/bawn/internal/atomicfile"
)

// MinPassphrase is the least length of a new passphrase in bytes.
const MinPassphrase = 8

// maxIdentity bounds an identity file in bytes.
const maxIdentity = 64 << 10

// ageFiles keeps each value in a file of its own, encrypted to one age
// recipient. Writing needs the recipient only. Reading needs its identity:
// the human's own file, or "identity.age", encrypted with a passphrase. The
// age program opens all of it: age -d -i identity.age NAME.ID.age. A line before the value
// says which it is.
type ageFiles struct {
	dir   string
	opts  *Options
	mu    sync.Mutex
	state filesState
	open  age.Identity
}

func (f *ageFiles) identityPath() string       { return filepath.Join(f.dir, "identity.age") }
func (f *ageFiles) valuePath(id string) string { return filepath.Join(f.dir, id+".age") }

// use takes what the index says, where it says something.
func (f *ageFiles) use(s filesState) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if s.Recipient != "" && s != f.state {
		f.state, f.open = s, nil
	}
	if f.state.Recipient == "" {
		return errors.New("there are no encrypted files yet")
	}
	return nil
}

// prepareFiles makes the files ready to be written.
func (v *Vault) prepareFiles(idx *index) error {
	if err := makeOwnDir(v.opts.StateDir); err != nil {
		return err
	}
	if err := makeOwnDir(v.files.dir); err != nil {
		return err
	}
	if idx.Files.Recipient != "" {
		return v.files.use(idx.Files)
	}
	return v.files.begin()
}

// begin finds or makes the identity of the first value.
func (f *ageFiles) begin() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.opts.Identity != "" {
		return f.openOwn(f.opts.Identity)
	}
	if _, err := os.Lstat(f.identityPath()); err == nil { // of an attempt that did not end
		return f.openWithPassphrase()
	}
	return f.makeIdentity()
}

// makeIdentity writes a new identity, encrypted with a new passphrase.
func (f *ageFiles) makeIdentity() error {
	pass, err := f.ask(true)
	if err != nil {
		return err
	}
	defer clear(pass)
	if len(pass) < MinPassphrase {
		return failure("take a longer one", "the passphrase has %d bytes; want %d at least", len(pass), MinPassphrase)
	}
	id, err := age.GenerateX25519Identity()
	if err != nil {
		return err
	}
	to, err := age.NewScryptRecipient(string(pass))
	if err != nil {
		return err
	}
	if f.opts.work > 0 {
		to.SetWorkFactor(f.opts.work)
	}
	sealed, err := seal([]byte(id.String()+"\n"), to)
	if err != nil {
		return err
	}
	if err := atomicfile.Create(f.identityPath(), sealed, 0o600); err != nil {
		return fmt.Errorf("keep the new identity: %w", err)
	}
	f.open, f.state = id, filesState{Recipient: id.Recipient().String()}
	return nil
}

// ask asks for the passphrase; who can't be asked gets the ways to do without.
func (f *ageFiles) ask(anew bool) ([]byte, error) {
	if f.opts.Passphrase == nil {
		return nil, failure("run it on a terminal, give --passphrase-file or BAWN_PASSPHRASE_FD, or make a key with age-keygen and give --identity FILE",
			"the encrypted files need a passphrase, and nobody can be asked; nothing is ever kept plain")
	}
	return f.opts.Passphrase(anew)
}

// openWithPassphrase opens our own identity.
func (f *ageFiles) openWithPassphrase() error {
	sealed, err := readOwn(f.identityPath(), maxIdentity)
	if err != nil {
		return fmt.Errorf("the vault's identity: %w", err)
	}
	pass, err := f.ask(false)
	if err != nil {
		return err
	}
	defer clear(pass)
	with, err := age.NewScryptIdentity(string(pass))
	if err != nil {
		return failure("try again", "the passphrase is empty")
	}
	plain, err := unseal(sealed, with)
	if err != nil {
		return failure("try again", "the passphrase does not open %q: %w", f.identityPath(), err)
	}
	defer clear(plain)
	return f.take(f.identityPath(), plain, "")
}

// openOwn opens the human's own identity file.
func (f *ageFiles) openOwn(path string) error {
	if !filepath.IsAbs(path) {
		return fmt.Errorf("the identity file is %q; want an absolute path", path)
	}
	plain, err := readOwn(path, maxIdentity)
	if err != nil {
		return fmt.Errorf("the identity file: %w", err)
	}
	defer clear(plain)
	return f.take(path, plain, path)
}

// take parses an identity and wants it to be the one the files are for. It
// never quotes what it parses.
func (f *ageFiles) take(path string, plain []byte, own string) error {
	ids, err := age.ParseIdentities(bytes.NewReader(plain))
	if err != nil || len(ids) != 1 {
		return failure("make one with age-keygen -o FILE", "%q has no age identity, or several; want one line AGE-SECRET-KEY-…", path)
	}
	to, err := recipientOf(ids[0])
	if err != nil {
		return fmt.Errorf("%q: %w", path, err)
	}
	if f.state.Recipient != "" && f.state.Recipient != to {
		return failure("give the identity file that the vault was made with", "%q is the identity of %s; the vault is encrypted to %s", path, to, f.state.Recipient)
	}
	if f.state.Recipient == "" {
		f.state = filesState{Recipient: to, Identity: own}
	}
	f.open = ids[0]
	return nil
}

func recipientOf(id age.Identity) (string, error) {
	switch id := id.(type) {
	case *age.X25519Identity:
		return id.Recipient().String(), nil
	case *age.HybridIdentity:
		return id.Recipient().String(), nil
	}
	return "", errors.New("want an identity that age-keygen makes")
}

func (f *ageFiles) put(_ context.Context, id string, value []byte) error {
	f.mu.Lock()
	to, err := age.ParseRecipients(strings.NewReader(f.state.Recipient))
	f.mu.Unlock()
	if err != nil {
		return fmt.Errorf("the vault's recipient: %w", err)
	}
	named := append([]byte(label(id)), value...)
	defer clear(named)
	sealed, err := seal(named, to...)
	if err != nil {
		return err
	}
	return atomicfile.Create(f.valuePath(id), sealed, 0o600)
}

// label is the line before a value in its file. age has no additional authenticated
// data; with the id inside, a file that replaced another is recognised.
func label(id string) string { return "bawn secret " + id + "\n" }

func (f *ageFiles) get(_ context.Context, id string) ([]byte, error) {
	sealed, err := readOwn(f.valuePath(id), MaxValue+4<<10)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, failure("set it again, or remove it with bawn secret rm", "its file %q is gone", f.valuePath(id))
	} else if err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.unlock(); err != nil {
		return nil, err
	}
	named, err := unseal(sealed, f.open)
	if err != nil {
		return nil, failure("set it again", "%q can't be decrypted: %w", f.valuePath(id), err)
	}
	value, ok := bytes.CutPrefix(named, []byte(label(id)))
	if !ok {
		clear(named)
		return nil, failure("set it again, and see who may write there", "%q holds what was kept under another name: somebody has replaced the file", f.valuePath(id))
	}
	return value, nil
}

func (f *ageFiles) unlock() error {
	own := f.opts.Identity
	if own == "" {
		own = f.state.Identity
	}
	switch {
	case f.open != nil:
		return nil
	case own != "":
		return f.openOwn(own)
	}
	return f.openWithPassphrase()
}

func (f *ageFiles) drop(_ context.Context, id string) error {
	if err := os.Remove(f.valuePath(id)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// forget releases the identity.
func (f *ageFiles) forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.open = nil
}

func seal(value []byte, to ...age.Recipient) ([]byte, error) {
	var out bytes.Buffer
	w, err := age.Encrypt(&out, to...)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(value); err != nil {
		return nil, err
	}
	err = w.Close()
	return out.Bytes(), err
}

// unseal decrypts all of it; the caller zeroes the result.
func unseal(sealed []byte, with age.Identity) ([]byte, error) {
	r, err := age.Decrypt(bytes.NewReader(sealed), with)
	if err != nil {
		return nil, err
	}
	buf := make([]byte, len(sealed)) // never grown: no copy is left behind
	n, err := io.ReadFull(r, buf)
	if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		clear(buf)
		return nil, fmt.Errorf("read it: %w", err)
	}
	return buf[:n], nil
}
