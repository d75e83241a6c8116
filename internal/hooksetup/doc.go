// Package hooksetup plans and makes the edits by which coding agents ask Bawn
// before they act: hooks in their settings, a plugin, an extension, a program.
//
// Each edit is a value that can be shown before anything is written. It keeps every
// byte that is the user's own, is idempotent, and can be undone: to the byte if the
// file has not changed since, otherwise by removing only Bawn's part.
//
// Hooks are no wall. What an agent does with one that is late or dead is in its
// data (package agents); what contains the agent is the sandbox.
package hooksetup
