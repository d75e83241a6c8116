package docker

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	docker "github.com/bawn-dev/bawn/internal/testenv/engine"
	"github.com/bawn-dev/bawn/internal/testenv/testhome"
)

// program is bawn, built once.
var program string

func TestMain(m *testing.M) {
	if text := os.Getenv(actVariable); text != "" {
		os.Exit(play(text))
	}
	os.Exit(withProgram(m))
}

// withProgram builds what containers run, and ends the engine in the end.
func withProgram(m *testing.M) int {
	dir, err := os.MkdirTemp("", "bawn-docker-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	program = filepath.Join(dir, "bawn")
	if err := testhome.Programs(dir, "cmd/bawn"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := m.Run()
	if err := docker.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}
