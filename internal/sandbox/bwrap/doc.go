// Package bwrap is the provider that starts sandboxes with bubblewrap. A guest
// sees native's layout, made by bwrap(1) instead of our own system calls. The
// first process is our own program (package inside), which does the rest:
// control groups, the network that opens by name, Landlock, the seccomp filter,
// and the commands by their tickets.
//
// It is for machines where only /usr/bin/bwrap may make user namespaces
// (Ubuntu's AppArmor profiles), and for people who trust it more than us.
package bwrap
