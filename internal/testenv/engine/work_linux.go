package engine

import (
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Work is an image for ordinary work: a shell and its tools, git, make, curl
// and python3, from the Debian packages of this machine.
const Work = "bawn-test/work:1"

// workPackages are the packages whose files the image Work has; a name may be
// a pattern of dpkg-query(1). Libraries come along as programs need them.
var workPackages = []string{
	"bash", "bsdutils", "coreutils", "curl", "dash", "debianutils", "diffutils", "findutils", "git", "grep", "gzip",
	"hostname", "libc-bin", "libpython3.*-minimal", "libpython3.*-stdlib", "make", "mawk", "netbase", "procps",
	"python3-minimal", "python3.*-minimal", "sed", "tar", "util-linux",
}

// left out are what no program reads.
var leftOut = []string{
	"/usr/share/doc/", "/usr/share/man/", "/usr/share/locale/", "/usr/share/info/", "/usr/share/lintian/",
	"/usr/share/bash-completion/", "/usr/share/perl5/", "/usr/share/gitweb/", "/usr/share/doc-base/", "/var/",
}

// work fills the image Work.
func work(l *layer) error {
	if err := l.skeleton(); err != nil {
		return err
	}
	for _, dir := range []string{"bin", "lib", "lib64", "sbin"} {
		if to, err := os.Readlink("/" + dir); err == nil {
			if err := l.link("/"+dir, to); err != nil {
				return err
			}
		}
	}
	files, err := packageFiles(workPackages)
	if err != nil {
		return err
	}
	for _, file := range append(files, "/usr/bin/awk", "/usr/bin/which", "/bin/sh") {
		if err := l.copy(file); err != nil {
			return err
		}
	}
	return nil
}

// Hour is Work with Node and npm, environments of Python, and this machine's Go.
const Hour = "bawn-test/hour:1"

// hour fills the image Hour.
func hour(l *layer) error {
	if err := work(l); err != nil {
		return err
	}
	files, err := packageFiles([]string{"nodejs", "python3-venv", "python3.*-venv", "python3-distutils"})
	if err != nil {
		return err
	}
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return fmt.Errorf("go env: %w", err)
	}
	root := strings.TrimSpace(string(out))
	for _, dir := range []string{root + "/bin", root + "/pkg", root + "/src", "/usr/lib/node_modules/npm"} { // npm may have replaced its package's files
		err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() {
				files = append(files, p)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	for _, file := range append(files, root+"/go.env", root+"/VERSION", "/usr/bin/npm", "/usr/bin/npx") {
		if err := l.copy(file); err != nil {
			return err
		}
	}
	return l.link("/usr/local/bin/go", root+"/bin/go")
}

// packageFiles lists the files of the installed packages that match a name.
func packageFiles(names []string) ([]string, error) {
	query := append([]string{"-W", "-f", "${db:Status-Status} ${Package}\n"}, names...)
	out, err := exec.Command("dpkg-query", query...).Output()
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || len(out) == 0) { // a pattern without a match is an error, too
		return nil, fmt.Errorf("dpkg-query, which only Debian has: %w", err)
	}
	list := []string{"-L"}
	for line := range strings.Lines(string(out)) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "installed "); ok {
			list = append(list, name)
		}
	}
	out, err = exec.Command("dpkg-query", list...).Output()
	if err != nil {
		return nil, fmt.Errorf("dpkg-query -L: %w", err)
	}
	files := strings.Split(strings.TrimSpace(string(out)), "\n")
	return slices.DeleteFunc(files, func(f string) bool {
		return !strings.HasPrefix(f, "/") || slices.ContainsFunc(leftOut, func(p string) bool { return strings.HasPrefix(f, p) })
	}), nil
}

// copy adds a file of this machine with what it points at and the libraries
// that it needs. What a package lists and this machine has removed is left out.
func (l *layer) copy(file string) error {
	dir, err := filepath.EvalSymlinks(filepath.Dir(file))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	file = filepath.Join(dir, filepath.Base(file))
	info, err := os.Lstat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode()&fs.ModeSymlink != 0:
		return l.copyLink(file)
	case !info.Mode().IsRegular() || l.has[strings.TrimPrefix(file, "/")]:
		return nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if err := l.file(file, int64(info.Mode().Perm()), text); err != nil {
		return err
	}
	return l.copyNeeded(file, strings.HasPrefix(string(text), elf.ELFMAG))
}

// copyLink adds a link and what it leads to.
func (l *layer) copyLink(file string) error {
	to, err := os.Readlink(file)
	if err != nil {
		return err
	}
	if err := l.link(file, to); err != nil {
		return err
	}
	if !filepath.IsAbs(to) {
		to = filepath.Join(filepath.Dir(file), to)
	}
	return l.copy(to)
}

// copyNeeded adds the interpreter and the libraries of an ELF file (ld.so(8)).
func (l *layer) copyNeeded(file string, isELF bool) error {
	if !isELF {
		return nil
	}
	f, err := elf.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	needed, err := f.ImportedLibraries()
	if err != nil {
		return err
	}
	if s := f.Section(".interp"); s != nil {
		text, err := s.Data()
		if err != nil {
			return err
		}
		needed = append(needed, strings.TrimRight(string(text), "\x00"))
	}
	for _, name := range needed {
		if err := l.copy(library(name)); err != nil {
			return err
		}
	}
	return nil
}

// library finds where Debian keeps a library.
func library(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	for _, pattern := range []string{"/usr/lib/*-linux-gnu/", "/lib/*-linux-gnu/", "/usr/lib/", "/lib/"} {
		if found, err := filepath.Glob(pattern + name); err == nil && len(found) > 0 {
			return found[0]
		}
	}
	return filepath.Join("/usr/lib", name)
}
