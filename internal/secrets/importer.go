package secrets

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/atomicfile"
)

// A Find is a credential that Look or LookEnv found and Import can import.
type Find struct {
	Name     string // the name it would have in the vault
	From     string // the file or variable it stands in
	Value    bawn.Secret
	Bindings []bawn.Binding
}

// A Source is a kind of file to import from.
type Source struct {
	Kind string // also the Format of its masks
	File string // where it usually is, below "~/"
	read func(real []byte) ([]login, error)
}

// Sources are the files that Look reads.
var Sources = []Source{
	{"npmrc", "~/.npmrc", npmLogins},
	{"netrc", "~/.netrc", netrcLogins},
	{"gh", "~/.config/gh/hosts.yml", ghLogins},
	{"kubeconfig", "~/.kube/config", kubeLogins},
	{"git-credentials", "~/.git-credentials", gitLogins},
	{"docker", "~/.docker/config.json", dockerLogins},
	{AWSFormat, AWSFile, awsLogins},
}

// Look returns the credentials in one file without changing it. If file is "", the
// source's usual file is read. If the file does not exist, the error is fs.ErrNotExist.
func (s Source) Look(file, home string) ([]Find, error) {
	if file == "" {
		file = s.File
	}
	real, err := atomicfile.Read(expand(file, home), maxReal)
	if err != nil {
		return nil, err
	}
	defer clear(real)
	logins, err := s.read(real)
	if err != nil {
		return nil, fmt.Errorf("%q: %w", file, err)
	}
	if rest, ok := strings.CutPrefix(file, filepath.Clean(home)+"/"); ok && home != "" {
		file = "~/" + rest
	}
	var out []Find
	for _, l := range logins {
		if l.value == "" || l.host == "" {
			continue
		}
		what := l.host
		if l.place == bawn.Signed {
			what = l.user
		}
		f := Find{Name: freeName(out, s.Kind+"-"+what), From: file, Value: bawn.NewSecret([]byte(l.value)), Bindings: s.bindings(l, file)}
		for i := range f.Bindings {
			f.Bindings[i].Secret = f.Name
		}
		out = append(out, f)
	}
	return out, nil
}

// bindings returns the hosts and places to which a client sends the credential.
func (s Source) bindings(l login, file string) []bawn.Binding {
	b := bawn.Binding{Host: l.host, Place: l.place, File: file, Format: s.Kind}
	switch {
	case s.Kind == "gh":
		if l.host == "github.com" {
			b.Host = "api.github.com"
		}
		return []bawn.Binding{b, {Host: l.host, Place: bawn.Basic, Name: l.user}}
	case s.Kind == AWSFormat:
		return []bawn.Binding{awsBinding(l, file)}
	case s.Kind == "docker" && strings.HasSuffix(l.host, ".docker.io"):
		b.Host = "*.docker.io" // it takes the password at another host than the one in the file
	}
	if l.place == bawn.Basic {
		b.Name = l.user
	}
	return []bawn.Binding{b}
}

// freeName makes a name of the vault out of text, other than those of finds.
func freeName(finds []Find, text string) string {
	name := strings.Map(func(c rune) rune {
		if alnum(c) || c == '.' || c == '-' || c == '_' {
			return c
		}
		return '-'
	}, text)
	name = name[:min(len(name), 60)]
	for n, free := 2, name; ; n++ {
		if !slices.ContainsFunc(finds, func(f Find) bool { return f.Name == free }) {
			return free
		}
		free = fmt.Sprintf("%s-%d", name, n)
	}
}

// LookEnv returns the key in a variable of environ, with the bindings of that variable
// in the table of well-known services. An unknown variable has no bindings.
func LookEnv(environ []string, variable string) (Find, error) {
	for i := len(environ) - 1; i >= 0; i-- {
		value, ok := strings.CutPrefix(environ[i], variable+"=")
		if !ok || value == "" {
			continue
		}
		f := Find{Name: strings.ReplaceAll(strings.ToLower(variable), "_", "-"), From: variable, Value: bawn.NewSecret([]byte(value)), Bindings: Service(variable)}
		for i := range f.Bindings {
			f.Bindings[i].Secret = f.Name
		}
		return f, nil
	}
	return Find{}, failure("give the name of a variable that is set here", "the variable %q is not set or empty", variable)
}

// Import stores and binds finds. A name that exists is an error, unless replace is set:
// then its value is replaced and its bindings stay. A credential that can't be bound is
// stored without that binding, and the error says so.
func (v *Vault) Import(ctx context.Context, finds []Find, replace bool) error {
	idx, err := v.index()
	if err != nil {
		return err
	}
	for _, f := range finds {
		if idx.find(f.Name) != nil && !replace {
			return failure("remove it first, or give --replace", "the secret %q is there already; nothing was imported", f.Name)
		}
	}
	var errs []error
	for _, f := range finds {
		there := idx.find(f.Name) != nil
		if err := v.Set(ctx, f.Name, f.Value); err != nil {
			return errors.Join(append(errs, err)...)
		}
		for _, b := range f.Bindings {
			if err := v.Bind(ctx, b); err != nil && !there {
				errs = append(errs, err)
			}
		}
	}
	return errors.Join(errs...)
}

// Absent reports whether an error of Look means that the file does not exist.
func Absent(err error) bool { return errors.Is(err, fs.ErrNotExist) }
