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
//
// The profile denies everything. Then it allows reading the system, writing the
// workspace and a temporary directory, and a few Mach services. Directories above hidden
// places and protected names can't be moved. The rules come from other projects' profiles
// (Chromium, Codex, Nix, WebKit, srt) and Apple's documentation.
//
// The guest has no loopback of its own: other programs reach what it serves and the
// proxy's port, and it can't connect to its own services. trustd is not asked, since it
// fetches what a certificate names. A process that leaves its group and loses its parent
// is not counted.
//
// What has to be tried on a Mac, in this order:
//
//   - The last matching rule counts, and a longer path comes later: the attacks of
//     sandboxtest.
//   - One expression for all protected names of a place (some 5 KiB): that the compiler
//     takes it, and the time of an operation.
//   - The guest's own terminals (com.apple.sandbox.pty); others only get ioctl: tmux,
//     script; another window's terminal can't be read.
//   - DIRHELPER_USER_DIR_SUFFIX moves confstr(3) below /private/var/folders: mktemp,
//     xcrun, swift build.
//   - UNIX sockets only in the session's temporary directory, and mDNSResponder with
//     --net full: tmux, ssh's ControlMaster, name resolution; Docker's and launchd's
//     sockets are refused.
//   - Serving on loopback (local ip "localhost:*") and connecting to the proxy's port
//     alone: a dev server, seen by a browser; other ports are refused.
//   - The kernel says /Users/…, never /System/Volumes/Data/Users/…: nothing is open by
//     the second name.
//   - /dev/fd, /dev/dtracehelper, dyld's cache below /System/Volumes/Preboot:
//     bash <(…), every program start.
package seatbelt

// Name is the name of the provider.
const Name = "seatbelt"

// Program is what applies a profile (sandbox-exec(1)). Apple calls it deprecated
// and ships it with every macOS.
const Program = "/usr/bin/sandbox-exec"
