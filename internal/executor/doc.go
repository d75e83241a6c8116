// Package executor runs commands in the execution zone of a session. Main is the
// program inside: the sandbox's first command, which starts only commands that a
// ticket permits. Client is the host's side of its control socket.
//
// The executor trusts nobody but the holder of the keys it was started with. Every
// start needs a ticket for exactly its words, directory, environment, standard
// input, limits and background, in this session and under this plan. A request
// without such a ticket is refused, and nothing is started.
//
// Its commands can't reach it. All commands come from one thread in a Landlock
// domain with a scope for signals (ABI 6, Linux 6.12). Commands may signal each
// other and no other process, whatever the call. The one thread in the same domain
// is guarded by a seccomp filter against the calls that aim at a thread, and
// against limits set on another process. The program is not dumpable, so that its
// memory and its descriptors are closed to them, and they inherit descriptors 0 to
// 2. Without ABI 6 a command can end the executor, and its own zone with it; it
// gains nothing else. Ready says which it is.
package executor
