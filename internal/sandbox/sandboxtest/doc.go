// Package sandboxtest is the conformance suite that every provider passes: it
// runs a program of its own, the victim, inside a sandbox and wants each
// operation that the sandbox promises to refuse to be refused, with the right
// errno and with nothing changed outside.
//
// No check counts without its control: [Control] runs each of them with no
// sandbox at all, where it must work and, if it changes something, the oracle
// must see the change. [Run] runs them inside. [Work] is the other half: what
// must go on as if there were no sandbox.
//
// Checks are called by their number in the probe catalogue (E001 …), or by a
// number of ours (A100 …) with a target behind the colon. The families are
// fs-write, fs-read, fs-narrow, credentials, protected-create, protected-rename,
// protected-link, proc, ipc, kernel, net and limits. Of the catalogue these
// are elsewhere: E126 (what a guest prints is its own; what approvals show is
// escaped by redact), E087 and E091 to E097 (egress by name), E182 to E191
// (relay, tickets and configuration), E171 (an inode flood is destructive; the
// time limit that ends it is tested as E174).
package sandboxtest
