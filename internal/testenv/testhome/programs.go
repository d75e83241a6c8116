// Package testhome is where tests run the real programs: it builds them, or
// takes what was built for the whole run of the tests, and gives each test an
// empty home to start them from.
package testhome

import (
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
)

// BuiltVariable names the environment variable that holds a directory with the
// programs that Programs would build, each under the last word of its package.
// scripts/built sets it for the tests that it starts. Nobody else should: what
// is found there is taken as it is.
const BuiltVariable = "BAWN_TEST_BUILT"

// Programs puts programs of this module side by side into dir, which it makes:
// packages are their paths below the module's, such as "cmd/bawn". They are
// built without a C library, or copied where [BuiltVariable] is set, and then a
// program that is missing there is an error.
func Programs(dir string, packages ...string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	built := os.Getenv(BuiltVariable)
	words := []string{"go", "build", "-trimpath", "-buildvcs=false", "-o", dir + "/"}
	if built != "" {
		words = []string{"cp", "--"}
	}
	for _, p := range packages {
		if built != "" {
			words = append(words, filepath.Join(built, path.Base(p)))
		} else {
			words = append(words, "github.com/bawn-dev/bawn/"+p)
		}
	}
	if built != "" {
		words = append(words, dir)
	}
	return do(words)
}

// do runs a command. Programs are written by other processes only: a child that
// this one forks meanwhile would hold them open for writing, and they could not
// be executed (ETXTBSY in execve(2)).
func do(words []string) error {
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%q: %w\n%s", words, err, out)
	}
	return nil
}
