// Package hostkey knows the host keys that the user has accepted: those of
// the known_hosts files (sshd(8), "SSH_KNOWN_HOSTS FILE FORMAT"), with hashed
// names, @revoked keys and @cert-authority lines. It never accepts a new one.
package hostkey

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
)

// Errors that Check wraps.
var (
	ErrUnknown = errors.New("unknown host key")
	ErrChanged = errors.New("changed host key")
	ErrRevoked = errors.New("revoked host key")
)

// maxFile bounds one known_hosts file; 16 MiB are some 100,000 hosts.
const maxFile = 16 << 20

// Known holds the accepted keys. Its zero value knows none.
type Known struct {
	check ssh.HostKeyCallback
	files map[string][][]byte // the lines, by the name that check uses
}

// Load reads known_hosts files. A missing file counts as empty. As in ssh, a line that
// can't be read is skipped, unless it revokes. dir holds copies during the call.
func Load(dir string, files ...string) (*Known, error) {
	work, err := os.MkdirTemp(dir, "bawn-known-hosts-*")
	if err != nil {
		return nil, fmt.Errorf("read known hosts: %w", err)
	}
	defer os.RemoveAll(work)
	k := &Known{files: map[string][][]byte{}}
	var copies []string
	for i, name := range files {
		text, err := read(name)
		if err != nil {
			return nil, err
		}
		to := filepath.Join(work, strconv.Itoa(i))
		lines := bytes.Split(text, []byte("\n"))
		if !parses(to, text) {
			if lines, err = repaired(to, name, lines); err != nil {
				return nil, err
			}
			text = bytes.Join(lines, []byte("\n"))
		}
		if err := os.WriteFile(to, text, 0o600); err != nil {
			return nil, fmt.Errorf("read known hosts: %w", err)
		}
		k.files[to] = lines
		copies = append(copies, to)
	}
	k.check, err = knownhosts.New(copies...)
	return k, err
}

// read returns a file's text, none where there is no file.
func read(name string) ([]byte, error) {
	text, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read known hosts: %w", err)
	}
	if len(text) > maxFile {
		return nil, fmt.Errorf("known hosts %q: %d bytes; want at most %d", name, len(text), maxFile)
	}
	return text, nil
}

// parses reports whether text can be read as a whole; file is for its copy.
func parses(file string, text []byte) bool {
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return false
	}
	_, err := knownhosts.New(file)
	return err == nil
}

// repaired empties the lines that can't be read, so that the others keep their
// numbers. A revocation is not passed over.
func repaired(file, name string, lines [][]byte) ([][]byte, error) {
	for i, l := range lines {
		if parses(file, l) {
			continue
		}
		if bytes.Contains(l, []byte("@revoked")) {
			return nil, fmt.Errorf("%s:%d: @revoked line that can't be read; want \"@revoked hosts type key\"", name, i+1)
		}
		lines[i] = nil
	}
	return lines, nil
}

// Check returns nil if key is one that the user has accepted for host and
// port, or a certificate of an authority accepted for them. Otherwise the
// error wraps ErrUnknown, ErrChanged or ErrRevoked where it is one of these,
// and says what to do.
func (k *Known) Check(host string, port uint16, key ssh.PublicKey) error {
	if k.check == nil {
		return unknown(host, port)
	}
	address := net.JoinHostPort(host, strconv.Itoa(int(port)))
	err := k.check(address, nowhere{}, key)
	var mismatch *knownhosts.KeyError
	var revoked *knownhosts.RevokedError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &revoked):
		return fmt.Errorf("%w: that of %q (%s) is marked @revoked in known_hosts", ErrRevoked, host, ssh.FingerprintSHA256(key))
	case errors.As(err, &mismatch) && len(mismatch.Want) == 0:
		return unknown(host, port)
	case errors.As(err, &mismatch):
		return fmt.Errorf("%w: %q shows %s, which is not what known_hosts has; find out why, then update it outside of the sandbox", ErrChanged, host, ssh.FingerprintSHA256(key))
	}
	return fmt.Errorf("host key of %q: %w", host, err)
}

func unknown(host string, port uint16) error {
	return fmt.Errorf("%w: known_hosts has none for %q; connect once outside of the sandbox (ssh -p %d %s) and compare the fingerprint", ErrUnknown, host, port, host)
}

// nowhere is the remote address in checks that go by name only.
type nowhere struct{}

func (nowhere) Network() string { return "tcp" }
func (nowhere) String() string  { return "0.0.0.0:0" }

// certificates are the algorithms by which a server shows a certificate, those
// with SHA-1 left out.
var certificates = []string{
	ssh.CertAlgoED25519v01, ssh.CertAlgoECDSA256v01, ssh.CertAlgoECDSA384v01, ssh.CertAlgoECDSA521v01,
	ssh.CertAlgoRSASHA512v01, ssh.CertAlgoRSASHA256v01,
}

// Algorithms returns the host key algorithms to ask a host for: those of the
// known keys, since a server that has several shows only one. The error wraps
// ErrUnknown if no key of the host is known.
func (k *Known) Algorithms(host string, port uint16) ([]string, error) {
	wanted, err := k.wanted(host, port)
	if err != nil {
		return nil, err
	}
	var certs, plain []string
	for _, w := range wanted {
		switch kind := w.Key.Type(); {
		case k.isAuthority(w):
			certs = certificates
		case kind == ssh.KeyAlgoRSA:
			plain = append(plain, ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256)
		default:
			plain = append(plain, kind)
		}
	}
	return append(certs[:len(certs):len(certs)], plain...), nil
}

// wanted returns the entries of known_hosts for a host, by checking a key that
// nobody has.
func (k *Known) wanted(host string, port uint16) ([]knownhosts.KnownKey, error) {
	if k.check == nil {
		return nil, unknown(host, port)
	}
	public, _, err := ed25519.GenerateKey(nil)
	if err != nil {
		return nil, err
	}
	stranger, err := ssh.NewPublicKey(public)
	if err != nil {
		return nil, err
	}
	err = k.check(net.JoinHostPort(host, strconv.Itoa(int(port))), nowhere{}, stranger)
	var mismatch *knownhosts.KeyError
	if !errors.As(err, &mismatch) || len(mismatch.Want) == 0 {
		return nil, unknown(host, port)
	}
	return mismatch.Want, nil
}

func (k *Known) isAuthority(key knownhosts.KnownKey) bool {
	lines := k.files[key.Filename]
	return key.Line > 0 && key.Line <= len(lines) && bytes.HasPrefix(bytes.TrimSpace(lines[key.Line-1]), []byte("@cert-authority"))
}

// Names returns the names that known_hosts has for port 22 in plain text: not
// hashed, and without a wildcard.
func (k *Known) Names() []string {
	var names []string
	for _, lines := range k.files {
		for _, l := range lines {
			marker, hosts, _, _, _, err := ssh.ParseKnownHosts(l)
			if err != nil || marker == "revoked" {
				continue
			}
			for _, h := range hosts {
				if !strings.ContainsAny(h, "*?!|[]") {
					names = append(names, h)
				}
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Lines returns what known_hosts has for port 22 of a host as lines of a
// known_hosts file that name this host alone, each with its end.
func (k *Known) Lines(host string) []byte {
	wanted, err := k.wanted(host, 22)
	if err != nil {
		return nil
	}
	var out []byte
	for _, w := range wanted {
		if k.isAuthority(w) {
			out = append(out, "@cert-authority "...)
		}
		out = append(out, host+" "...)
		out = append(out, ssh.MarshalAuthorizedKey(w.Key)...)
	}
	return out
}
