// Package sdk is Bawn for other programs: decide on an action, run a command in a
// sandbox, read and verify the log.
//
// The words (Action, Decision, Event, Mode, Verdict) are those of package bawn at the
// module's root. Zero values refuse: the zero [Policy] denies each action, the zero
// [Command] and the zero [Log] are errors.
//
// [Policy] decides in this process and needs nothing of the machine. [Command] starts the
// installed program "bawn", so that the sandbox is made by the same program, with the same
// configuration, as at the command line, and no code of it runs in the caller. [Log] reads
// files.
//
// # Compatibility
//
// Until version 1.0 a minor release may change this package; CHANGELOG.md says how. From
// 1.0 on, within a major version: no exported name goes or changes its type; structs get
// new fields, whose zero value is what was before; an action that was denied may come to
// be asked about or allowed only by a rule of the caller's, and built-in rules may become
// stricter in each release. All else of this module is not for import, except what is
// exported of package bawn.
package sdk
