package launch

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/bawn-dev/bawn/internal/atomicfile"
)

// OwnSecret reads one of the user's secrets, and creates it if it does not exist.
// It refuses a file that others could have read or written.
func OwnSecret(name string) (string, error) {
	_, err := os.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		err = atomicfile.Create(name, []byte(rand.Text()+rand.Text()), 0o600)
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return "", fmt.Errorf("make a secret: %w", err)
	}
	info, err := os.Lstat(name)
	if err == nil && (!info.Mode().IsRegular() || info.Mode().Perm()&0o077 != 0 || info.Size() < MinSecret) {
		err = fmt.Errorf("%q (%v) is open to others, too short or no file; remove it, and another one is made", name, info.Mode())
	}
	if err != nil {
		return "", err
	}
	text, err := atomicfile.Read(name, 1024)
	return string(text), err
}

// MinSecret is how many bytes a secret has at least.
const MinSecret = 32
