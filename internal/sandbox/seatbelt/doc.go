// Package seatbelt is the sandbox of macOS: a profile for sandbox-exec(1), which
// the kernel holds every process of a session to. The profile is computed by Make
// on any system and compared with golden files; only a Mac carries it out.
//
// It was written from what is published about the language (SBPL) and has not
// been run on a Mac by those who wrote it. So no attribute is called enforced:
// each is partly, with what is missing, until the conformance suite has been
// seen to pass there.
//
// In the language the last rule that matches an operation counts. So rules on
// paths come in the order of their lengths, the longest last, and of a place that
// is both open and closed the denial comes after.
package seatbelt

// Name is the name of the provider.
const Name = "seatbelt"

// Program is what applies a profile (sandbox-exec(1)). Apple calls it deprecated
// and ships it with every macOS.
const Program = "/usr/bin/sandbox-exec"
