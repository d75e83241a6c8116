package supervise

import (
	"path"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/sandbox/layout"
)

// RulePipe is the rule by which a FIFO or a socket fails under a name that git
// reads.
const RulePipe = "isolation:pipe"

// GitReads are the files that git opens in every directory of a work tree. It waits
// for ever where one of them is a FIFO, and so does a prompt that shows git's status.
var GitReads = []string{".gitignore", ".gitattributes", ".gitmodules", ".mailmap"}

// mayWait errs if what gets the name of p makes git wait.
func (c *call) mayWait(p place, mode uint32) error {
	if kind := mode & unix.S_IFMT; kind != unix.S_IFIFO && kind != unix.S_IFSOCK {
		return nil
	}
	if !slices.Contains(GitReads, layout.Fold(path.Base(p.abs))) {
		return nil
	}
	c.s.onDenial(sandbox.Denial{
		Kind: bawn.Filesystem, Operation: bawn.Create, Resource: p.abs, Rule: RulePipe,
		Reason: "git on the host would open it and wait for ever",
		Remedy: "make a regular file, or use another name",
	})
	return unix.EACCES
}

// mayWaitAt is mayWait for the file that an open directory holds under name, or
// dir itself.
func (c *call) mayWaitAt(p place, dir int, name string) error {
	_, mode, err := identify(dir, name)
	if err != nil {
		return err
	}
	return c.mayWait(p, mode)
}
