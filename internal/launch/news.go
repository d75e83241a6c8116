package launch

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"

	"github.com/bawn-dev/bawn/internal/atomicfile"
	"github.com/bawn-dev/bawn/internal/settings"
)

// toldDir holds, below Bawn's state directory, a digest of the last text under each
// key.
const toldDir = "told"

// news reports whether a text differs from the last one under a key, and
// remembers it. Where it can't be remembered it is news again the next time.
func news(e *Env, key, text string) bool {
	state, err := settings.StateDir(&e.World)
	if err != nil {
		return true
	}
	sum := sha256.Sum256([]byte(text))
	want, file := hex.EncodeToString(sum[:]), filepath.Join(state, toldDir, key)
	if b, err := atomicfile.Read(file, 2*sha256.Size); err == nil && string(b) == want {
		return false
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err == nil {
		_ = atomicfile.Write(file, []byte(want), 0o600)
	}
	return true
}
