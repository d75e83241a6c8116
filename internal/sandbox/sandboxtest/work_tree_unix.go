//go:build unix

package sandboxtest

import (
	"fmt"
	"io/fs"
	"syscall"
)

// sparseFactor is how many times more bytes than its blocks hold make a file
// sparse.
const sparseFactor = 4

// fromStat adds what fs.FileInfo has no name for.
func (n *node) fromStat(info fs.FileInfo) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return
	}
	n.owner = fmt.Sprintf("%d:%d", st.Uid, st.Gid)
	if info.IsDir() {
		return
	}
	n.links = uint64(st.Nlink)
	n.sparse = info.Mode().IsRegular() && info.Size() > 1<<20 && st.Blocks*512*sparseFactor < info.Size()
}
