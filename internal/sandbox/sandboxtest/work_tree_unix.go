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

// An identity is equal for two names of one file.
type identity struct{ dev, ino uint64 }

// fromStat adds what fs.FileInfo has no name for.
func (n *node) fromStat(info fs.FileInfo) identity {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return identity{}
	}
	n.owner = fmt.Sprintf("%d:%d", st.Uid, st.Gid)
	n.sparse = info.Mode().IsRegular() && info.Size() > 1<<20 && st.Blocks*512*sparseFactor < info.Size()
	return identity{uint64(st.Dev), uint64(st.Ino)}
}
