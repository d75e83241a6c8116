// Package checkpoint keeps what a session may destroy: the files of a workspace, as
// they were at certain moments, in a store that no guest sees.
//
// A checkpoint is taken in three steps. The scan compares each name by stat with
// the index, which the last checkpoint has left, and reads nothing. What the index
// doesn't know is read and put into one pack. Then a record is written, which
// names the trees. The index itself is written last: it only saves time.
//
//	records/ID.json     what a checkpoint is: when, why, which trees
//	packs/ID            contents and trees by their SHA-256, compressed with zstd
//	index-ID            stat results of a root's files, and their digests
//	lock                held while the store is written
//
// An undo compares three trees: before, what the session left, and now. It writes
// through directories that it has opened without following a link, and first takes
// a checkpoint of the present.
//
// The store needs no program, and trusts nothing that a guest has written: content
// is named by its digest, and names are data.
package checkpoint
