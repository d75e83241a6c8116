// Package supervise carries out the calls of a guest that seccomp holds: it opens
// and names files, connects sockets and refuses what the plan of package layout
// forbids. It also keeps hidden places hidden when the host changes them, and
// judges the changes that an engine brings back from a copy of the workspace.
// Every provider whose guests are supervised uses it.
package supervise
