package secrets

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"github.com/bawn-dev/bawn/internal/atomicfile"
)

// readOwn reads a file that belongs to this user and to nobody else: not a link,
// mode 0600 or less. The error is fs.ErrNotExist if the file does not exist.
func readOwn(path string, limit int64) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|atomicfile.NonBlock|syscall.O_NOFOLLOW, 0)
	if err != nil {
		if errors.Is(err, syscall.ELOOP) {
			return nil, failure("put the file itself there", "%q is a symbolic link; want a file", path)
		}
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if err := ownOnly(path, info, 0o600); err != nil {
		return nil, err
	}
	return atomicfile.ReadOpen(f, limit)
}

// ownOnly refuses what another user owns, or may read or write.
func ownOnly(path string, info fs.FileInfo, want fs.FileMode) error {
	if s, ok := info.Sys().(*syscall.Stat_t); !ok || int(s.Uid) != os.Geteuid() {
		return failure("change its owner, or run bawn as the user who owns it", "%q belongs to another user; want one of user %d", path, os.Geteuid())
	}
	if info.Mode().Perm()&0o077 != 0 {
		return failure(fmt.Sprintf("chmod %o %s", want, path), "%q has mode %04o: others may use it; want %04o", path, info.Mode().Perm(), want)
	}
	return nil
}

// makeOwnDir makes a directory that only this user may enter. An existing one
// may be readable for others but not writable.
func makeOwnDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if s, ok := info.Sys().(*syscall.Stat_t); !ok || int(s.Uid) != os.Geteuid() || info.Mode().Perm()&0o022 != 0 {
		return failure("chown it to yourself and chmod 700 "+dir, "the directory %q belongs to another user or may be written by others; want one of user %d, mode 0700", dir, os.Geteuid())
	}
	return nil
}
