// Package undo takes the checkpoints of sessions and undoes what sessions have
// done: the files of the workspace (package checkpoint) together with the state of
// its repository (package gitstore).
//
// A Taker belongs to one session. Its first checkpoint is scanned beside the making
// of the sandbox; the guest's command waits until it is kept. A Plan compares a
// checkpoint with the present and takes the workspace back.
package undo
