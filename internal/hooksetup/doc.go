// Package hooksetup plans and makes the edits by which coding agents ask Bawn
// before they act: hooks in their settings, a plugin, an extension, a program.
//
// Each edit is a value that can be shown before anything is written. It keeps
// every byte of what is the user's own, is the same when it is made twice, and can be
// taken back: to the byte where nobody has changed the file since, and otherwise
// by taking out only what is Bawn's.
//
// Hooks are no wall. What an agent does with one that is late or dead is in its
// data (package agents); what contains the agent is the sandbox.
package hooksetup
