// Package sandboxtest is the conformance suite that every provider passes. It
// runs its own program, the victim, inside a sandbox. Each operation that the
// sandbox promises to refuse must fail with the right errno and change nothing
// outside.
//
// No check counts without its control. [Control] runs each of them without a
// sandbox, where it must work and the oracle must see any change. [Run] runs
// them inside. [Work] is the other half: ordinary work that must go on as
// without a sandbox.
//
// Checks are called by their number in the probe catalogue (E001 …), or by a
// number of ours (A100 …) with a target behind the colon. The families are
// fs-write, fs-read, fs-narrow, credentials, protected-create, protected-rename,
// protected-link, proc, ipc, kernel, net and limits. These cases of the
// catalogue are tested elsewhere: E126 (guests' output; approvals escape it with
// redact), E087 and E091 to E097 (egress by name), E182 to E191 (relay, tickets
// and configuration). E171 is left out (an inode flood is destructive; the time
// limit that ends it is tested as E174).
package sandboxtest
