package launch

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/bawn-dev/bawn/internal/atomicfile"
	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/sandbox/layout"
	"github.com/bawn-dev/bawn/internal/settings"
	"github.com/bawn-dev/bawn/internal/verb"
)

// usersDirectory, of Bawn's own cache, has lists of users for guests, by their digest.
const usersDirectory = "users"

// maxUsers bounds the host's lists, in bytes.
const maxUsers = 4 << 20

// userFiles are the host's lists of users and groups with the guest's own entry. Java,
// ssh and others take the home from there and not from HOME. A list that says the
// same already is left out, and so is one that can't be read.
func userFiles(e *Env) (list []sandbox.File, err error) {
	if runtime.GOOS != "linux" {
		return nil, nil
	}
	text, err := atomicfile.Read(layout.PasswdFile, maxUsers)
	if err != nil {
		return nil, nil //nolint:nilerr // the guest can't read it either
	}
	user := layout.UserInside(string(text), os.Geteuid(), os.Getegid())
	user.Home, user.Shell = filepath.Clean(e.Getenv("HOME")), cmp.Or(e.Getenv("SHELL"), "/bin/sh")
	user.Name = cmp.Or(e.Getenv("USER"), e.Getenv("LOGNAME"))
	add := func(target, content string, needed bool) {
		if needed && err == nil {
			var source string
			source, err = keepUsers(e, content)
			list = append(list, sandbox.File{Source: source, Target: target})
		}
	}
	passwd, needed := user.Passwd(string(text))
	add(layout.PasswdFile, passwd, needed)
	if text, err := atomicfile.Read(layout.GroupFile, maxUsers); err == nil {
		group, needed := user.Group(string(text))
		add(layout.GroupFile, group, needed)
	}
	return list, err
}

// keepUsers writes a list, unless an earlier session has, and returns where it is. A
// list that is right is never replaced: a session that starts at the same moment
// mounts it and wants to find the same file.
func keepUsers(e *Env, content string) (string, error) {
	sum := sha256.Sum256([]byte(content))
	path := filepath.Join(settings.BaseDir(&e.World, "XDG_CACHE_HOME", ".cache"), "bawn", usersDirectory, hex.EncodeToString(sum[:16]))
	right := func() bool {
		old, err := atomicfile.Read(path, maxUsers)
		return err == nil && string(old) == content
	}
	if right() {
		return path, nil
	}
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if err == nil {
		err = atomicfile.Create(path, []byte(content), 0o444)
	}
	if err != nil && !right() { // a damaged list is there, or the file system has no hard links
		err = atomicfile.Write(path, []byte(content), 0o444)
	}
	if err != nil && !right() {
		return "", &verb.Error{Code: verb.ExitInternal, Err: fmt.Errorf("write the guest's list of users: %w", err), Hint: "mend the directory or set XDG_CACHE_HOME"}
	}
	return path, nil
}
