package sandboxtest

import (
	"bytes"
	"compress/zlib"
	"crypto/sha1" // git names its objects so
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/sandbox/sandboxtest/probe"
)

// put writes a file with the directories that lead to it.
func put(t testing.TB, text string, parts ...string) {
	t.Helper()
	p := filepath.Join(parts...)
	check(t, os.MkdirAll(filepath.Dir(p), 0o755))
	check(t, os.WriteFile(p, []byte(text), 0o644))
}

// makeHome fills the home directory. What Bawn reads there must be valid.
func (f *Fixtures) makeHome(t testing.TB) {
	secret := "credential " + f.Token + "\n"
	for _, dir := range probe.CredentialDirs {
		put(t, secret, f.Home, dir, probe.CredentialFile)
	}
	for _, name := range probe.CredentialFiles {
		put(t, secret, f.Home, name)
	}
	for _, name := range []string{".bashrc", ".profile", ".local/bin/tool", ".config/systemd/user/there", ".cache/there"} {
		put(t, "# "+f.Token+"\n", f.Home, name)
	}
	config := fmt.Sprintf("# %s\n[isolation.resources]\nopen_files = %d\nfile_size_mb = %d\n", f.Token, f.OpenFiles, f.FileSizeMB)
	put(t, config, f.Config, "config.toml")
	put(t, f.Token+"\n", f.Data, "fixture")
	check(t, os.Chmod(f.Data, 0o700))
	check(t, os.Chmod(filepath.Join(f.Home, ".ssh"), 0o700))
}

// makeOutside fills a directory beside the home directory.
func (f *Fixtures) makeOutside(t testing.TB) {
	put(t, "canary\n", f.Out, "canary")
	put(t, "leaked\n", f.Out, "leaked")
	put(t, f.Token, f.Secret)
	put(t, f.Token, f.Denied)
	for _, name := range []string{"settings.json", "hooks/run", "sub/deep/settings.json"} {
		put(t, "# here before\n", f.Writable, name)
	}
	for _, name := range []string{"token", "closed/token", "sub/deep/token"} {
		put(t, f.Token, f.Writable, name)
	}
	check(t, os.Chmod(f.Denied, 0o755)) // it may be executed
	check(t, os.Chmod(f.Secret, 0o755))
	check(t, os.Symlink("canary", filepath.Join(f.Out, "link")))
	check(t, os.MkdirAll(filepath.Join(f.Out, "empty"), 0o755))
	check(t, os.MkdirAll(filepath.Join(f.Out, "run"), 0o755))
	if err := unix.Setxattr(filepath.Join(f.Out, "canary"), "user.given", []byte("1"), 0); err != nil && err != unix.EOPNOTSUPP {
		check(t, err)
	}
}

// makeWorkspaces makes one workspace with every protected name, also in a
// repository inside it, and one without.
func (f *Fixtures) makeWorkspaces(t testing.TB) {
	full, empty := f.in(probe.Present).Workspace, f.in(probe.Absent).Workspace
	for _, dir := range []string{full, filepath.Join(full, probe.Nested)} {
		makeRepository(t, dir)
		for _, name := range probe.Protected {
			if name != ".git/config" {
				put(t, protectedText(name), dir, name)
			}
		}
		check(t, os.Chmod(filepath.Join(dir, ".git/hooks/pre-commit"), 0o755))
	}
	makeRepository(t, filepath.Join(full, probe.Spare))
	put(t, "hello\n", empty, "README")
	check(t, os.MkdirAll(filepath.Join(empty, probe.Deep), 0o755))
	makeRepository(t, filepath.Join(empty, probe.Repo))
}

// protectedText is accepted by both git and Bawn.
func protectedText(name string) string {
	switch filepath.Base(name) {
	case "commondir":
		return ".\n"
	case "pre-commit", "post-checkout":
		return "#!/bin/sh\nexit 0\n"
	}
	return "# here before\n"
}

// repositoryConfig is what git init writes.
const repositoryConfig = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = true\n"

// makeRepository makes a git repository with two commits, without git.
func makeRepository(t testing.TB, dir string) {
	git := filepath.Join(dir, ".git")
	put(t, "hello\n", dir, "README")
	blob := object(t, git, "blob", "hello\n")
	raw, err := hex.DecodeString(blob)
	check(t, err)
	tree := object(t, git, "tree", "100644 README\x00"+string(raw))
	const who = "Probe <probe@example.com> 1700000000 +0000"
	head := ""
	for _, message := range []string{"first", "second"} {
		parent := ""
		if head != "" {
			parent = "parent " + head + "\n"
		}
		head = object(t, git, "commit", "tree "+tree+"\n"+parent+"author "+who+"\ncommitter "+who+"\n\n"+message+"\n")
	}
	put(t, "ref: refs/heads/main\n", git, "HEAD")
	put(t, head+"\n", git, "refs/heads/main")
	put(t, repositoryConfig, git, "config")
	put(t, "# nothing\n", git, "info/exclude")
}

// object writes a loose object and returns its name; see gitformat-loose(5)
// and git-hash-object(1).
func object(t testing.TB, git, kind, text string) string {
	whole := fmt.Sprintf("%s %d\x00%s", kind, len(text), text)
	sum := sha1.Sum([]byte(whole))
	name := hex.EncodeToString(sum[:])
	var packed bytes.Buffer
	w := zlib.NewWriter(&packed)
	_, err := strings.NewReader(whole).WriteTo(w)
	check(t, err)
	check(t, w.Close())
	put(t, packed.String(), git, "objects", name[:2], name[2:])
	return name
}
