package reference

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/bawn-dev/bawn/internal/relay"
)

// WriteUnits writes systemd's user units of the relay into a directory, for a program
// at this path. They are what "bawn serve --unit" prints.
func WriteUnits(dir, program string) error {
	names := map[string]bool{"bawn.service": true, "bawn.socket": true}
	for _, part := range strings.Split("\n"+relay.Units("linux", program, "serve"), "\n# ")[1:] {
		path, text, _ := strings.Cut(part, "\n")
		name := filepath.Base(path)
		if !names[name] {
			continue // what to do with them
		}
		delete(names, name)
		if err := os.WriteFile(filepath.Join(dir, name), []byte(strings.TrimSpace(text)+"\n"), 0o644); err != nil {
			return err
		}
	}
	if len(names) > 0 {
		return fmt.Errorf("the relay has no units %v", names)
	}
	return nil
}
