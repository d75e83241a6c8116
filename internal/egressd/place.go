package egressd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/bawn-dev/bawn/internal/egress"
	"github.com/bawn-dev/bawn/internal/egress/mitm"
	"github.com/bawn-dev/bawn/internal/egress/trust"
)

// ruleTrust is reported if programs of the guest can't trust the relay.
const ruleTrust = "builtin:egress-trust"

// inGuest is where the guest finds the relay's files.
const inGuest = "/run/bawn"

// maxBundle bounds the system's roots, in bytes.
const maxBundle = 16 << 20

// place makes the files that the guest finds: a hosts file that names only the
// guest itself, since the resolver answers all names, and the session's CA
// where programs look for roots.
func (s *session) place(ctx context.Context) error {
	if err := makePlace(s.config.Place); err != nil {
		return fmt.Errorf("make a place for what the guest reads: %w", err)
	}
	s.placed = true
	if err := s.placeHosts(); err != nil {
		return err
	}
	if err := s.placeMasks(); err != nil {
		return err
	}
	if err := s.placeAgent(ctx); err != nil {
		return err
	}
	if err := s.placeSSH(); err != nil || !s.opens() {
		return err
	}
	return s.placeCA()
}

// A promise is a file that was placed empty, so that it can be planned with,
// and its future contents.
type promise struct {
	file    *os.File
	content func(io.Writer) error
}

// promise makes one file of the place, for fill to write: through no path, since
// the place may be gone by then.
func (s *session) promise(name string, content func(io.Writer) error) (string, error) {
	path := filepath.Join(s.config.Place, name)
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o444)
	if err != nil {
		return "", err
	}
	s.promised = append(s.promised, promise{f, content})
	return path, nil
}

// keep writes the file.
func (p promise) keep() error { return errors.Join(p.content(p.file), p.file.Close()) }

// makePlace makes a directory that nobody else can have made or exchanged: an
// existing one is refused.
func makePlace(path string) error {
	if !filepath.IsAbs(path) || filepath.Clean(path) != path {
		return fmt.Errorf("%q: want an absolute path", path)
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for above := dir; ; above = filepath.Dir(above) {
		if err := ownDirectory(above, above == dir); err != nil {
			return err
		}
		if above == filepath.Dir(above) {
			break
		}
	}
	if err := os.Mkdir(path, 0o700); err != nil {
		return err
	}
	return egress.MarkPlace(path)
}

// overflowUID is the owner shown for users that a user namespace does not map
// (user_namespaces(7)); in a container root is one of them.
const overflowUID = 65534

// ownDirectory refuses a directory in which another user can put things in the
// place of ours. The last directory above a place must be the user's only.
func ownDirectory(path string, last bool) error {
	stat := os.Stat // of those further up, a link counts as where it leads
	if last {
		stat = os.Lstat
	}
	info, err := stat(path)
	if err != nil {
		return err
	}
	sys, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return fmt.Errorf("BUG(bawn): %q has no owner", path)
	}
	uid, mode := sys.Uid, info.Mode()
	mine := uid == uint32(os.Geteuid())
	switch {
	case !info.IsDir():
		return fmt.Errorf("%q is no directory; remove it", path)
	case last && (!mine || mode.Perm()&0o022 != 0):
		return fmt.Errorf("%q (%v, of user %d) can be written by others; want a directory of your own: chmod 700 it, or remove it", path, mode, uid)
	case !mine && uid != 0 && uid != overflowUID, mode.Perm()&0o002 != 0 && mode&fs.ModeSticky == 0:
		return fmt.Errorf("%q (%v, of user %d) lets others replace what lies below it; want it to be yours or root's", path, mode, uid)
	}
	return nil
}

// put writes one file of the place.
func (s *session) put(name string, data []byte) (string, error) {
	path := filepath.Join(s.config.Place, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return "", err
	}
	return path, os.WriteFile(path, data, 0o444)
}

// cover shows source at target in the guest, where the host has a file there.
func (s *session) cover(source, target string) {
	real, err := filepath.EvalSymlinks(target)
	if err != nil || slices.ContainsFunc(s.ready.Files, func(f egress.File) bool { return f.Target == real }) {
		return // it is missing, or another name of a covered file
	}
	s.ready.Files = append(s.ready.Files, egress.File{Source: source, Target: real})
}

func (s *session) placeHosts() error {
	name, err := os.Hostname()
	if err != nil || strings.ContainsAny(name, " \t\r\n#") {
		name = "localhost"
	}
	text := fmt.Sprintf("127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n127.0.1.1 %s\n", name)
	path, err := s.put("hosts", []byte(text))
	if err != nil {
		return err
	}
	s.cover(path, "/etc/hosts")
	return nil
}

func (s *session) placeCA() error {
	where := trust.Place(inGuest + "/trust")
	roots := func() (*os.File, error) { return systemRoots(s.env, where.Bundles) }
	if err := os.Mkdir(filepath.Join(s.config.Place, "trust"), 0o755); err != nil {
		return err
	}
	if _, err := s.promise("trust/"+trust.CA, func(w io.Writer) error {
		if _, err := w.Write(s.ca.PEM()); err != nil {
			return err
		}
		return extraRoots(w, s.env)
	}); err != nil {
		return err
	}
	bundle, err := s.promise("trust/"+trust.Bundle, func(w io.Writer) error {
		return reading(roots, func(system *os.File) error { return s.ca.WriteBundle(w, io.LimitReader(system, maxBundle)) })
	})
	if err != nil {
		return err
	}
	s.ready.Files = append(s.ready.Files, egress.File{Source: filepath.Dir(bundle), Target: inGuest + "/trust"})
	for _, target := range where.Bundles {
		s.cover(bundle, target)
	}
	java, err := s.placeJava(where, roots)
	if err != nil {
		return err
	}
	for _, v := range where.Env {
		if v.Name != "JAVA_TOOL_OPTIONS" || java {
			s.setEnv(v)
		}
	}
	return nil
}

// placeJava makes a trust store where a Java is. The variable is for one that
// does not look where the distributions do: Java remarks on it at each start.
func (s *session) placeJava(where trust.Placement, roots func() (*os.File, error)) (variable bool, err error) {
	there := slices.ContainsFunc(where.Java, func(p string) bool { _, err := os.Stat(p); return err == nil })
	variable = s.env.get("JAVA_HOME") != ""
	if !there && !variable {
		return false, nil
	}
	path := filepath.Join(s.config.Place, "trust", trust.JavaStore)
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o444)
	if err != nil {
		return false, err
	}
	for _, target := range where.Java {
		s.cover(path, target)
	}
	s.later = append(s.later, func() error { // it takes longer than all else together, and Java takes longer still to ask
		return promise{f, func(w io.Writer) error {
			return reading(roots, func(system *os.File) error {
				return s.ca.WriteJavaTrustStore(w, io.NewSectionReader(system, 0, maxBundle))
			})
		}}.keep()
	})
	return variable, nil
}

func (s *session) setEnv(v trust.Variable) {
	value := v.Value
	if had := s.env.get(v.Name); v.Append && had != "" {
		value = had + " " + value
	}
	s.ready.Env = append(s.ready.Env, v.Name+"="+value)
}

// systemRoots opens the roots that the host trusts. Without any it opens an empty
// file: such a host trusts nobody, and so does the guest but for us.
func systemRoots(env environ, bundles []string) (*os.File, error) {
	if own := env.get("SSL_CERT_FILE"); own != "" {
		bundles = []string{own}
	}
	for _, path := range bundles {
		f, err := os.Open(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read the host's trusted roots: %w", err)
		}
		info, err := f.Stat()
		if err == nil && info.Size() > maxBundle {
			err = fmt.Errorf("the host's trusted roots %q have %d bytes; want at most %d", path, info.Size(), maxBundle)
		}
		if err != nil {
			return nil, errors.Join(err, f.Close())
		}
		return f, nil
	}
	return os.Open(os.DevNull)
}

// reading gives f an open file, and closes it.
func reading(open func() (*os.File, error), f func(*os.File) error) error {
	file, err := open()
	if err != nil {
		return err
	}
	return errors.Join(f(file), file.Close())
}

// extraRoots writes the roots that the human's programs trust besides their own:
// those programs are about to be told of another file.
func extraRoots(w io.Writer, env environ) error {
	for _, v := range trust.Place("").Env {
		path := env.get(v.Name)
		if !strings.HasSuffix(v.Value, "/"+trust.CA) || path == "" {
			continue
		}
		if _, err := io.WriteString(w, "\n"); err != nil {
			return err
		}
		one := func() (*os.File, error) { return systemRoots(nil, []string{path}) }
		err := reading(one, func(f *os.File) error { _, err := io.Copy(w, io.LimitReader(f, maxBundle)); return err })
		if err != nil {
			return err
		}
	}
	return nil
}

// opens reports whether a host may have to be opened.
func (s *session) opens() bool {
	return len(s.config.Egress.HTTP)+len(s.config.Egress.Git)+len(s.bindings) > 0
}

// makeCA makes the session's CA where a host may have to be opened.
func (s *session) makeCA(context.Context) (err error) {
	if !s.opens() {
		return nil
	}
	s.ca, err = mitm.NewCA(s.config.Session, now())
	return err
}
