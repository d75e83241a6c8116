// Package first is what bawn does before anything else where it covers a shell: it
// tries the short way to the session socket (package quick). A shell is started for
// every command of a split session, and to initialise all that bawn links costs twice
// of what the shell needs. Packages are initialised in the order of their names as
// soon as their imports are (The Go Programming Language Specification, "Program
// initialization"). This one imports little, so it comes before all other packages of
// bawn.
package first

import (
	"os"

	"github.com/bawn-dev/bawn/internal/shim/quick"
)

func init() {
	self, err := os.Executable()
	if err != nil || !quick.IsShell(self) {
		return
	}
	if code, ended := quick.Shell(os.Args, os.Environ(), quick.Socket); ended {
		os.Exit(code)
	}
}
