// Package checkpoint keeps files that a session may destroy: those of a workspace,
// as they were at certain moments, in a store that no guest sees.
//
// A checkpoint is taken in three steps. The scan compares each name by stat with
// the index, which the last checkpoint has left, and reads nothing. Files that the
// index does not know are read and put into one pack. Then a record is written,
// which names the trees. The index itself is written last: it only saves time.
//
//	records/ID.json     what a checkpoint is: when, why, which trees
//	packs/ID            contents and trees by their SHA-256, compressed with zstd
//	index-ID            stat results of a root's files, and their digests
//	lock                held while the store is written
//
// An undo compares three trees: before, at the session's end, and now. It writes
// through directories that it has opened without following a link, and first takes
// a checkpoint of the present.
//
// Pack, record and index are written under another name and renamed, in this order. A
// killed process leaves files "new-…", which the next one removes. A full disk ends a
// checkpoint with an error and leaves earlier ones whole. A pack with a damaged table is
// put aside: checkpoints that need it say so at an undo, and the next checkpoint stores
// the contents again. Damage within a pack is seen when its contents are read.
//
// A file is read again when its inode, size, mode, mtime or ctime differ; on tmpfs, and
// without an index, always. A program that writes through a mapping may change a page
// without a new ctime. So, while a guest runs, a changed file is written back before it
// is read. Of more than 4,096 places that are not covered a record names the first, then
// the root.
//
// The store needs no program, and trusts nothing that a guest has written: content
// is named by its digest, and names are data.
package checkpoint
