// Package seccomp states as data which system calls a guest may make, and
// compiles that to the classic BPF program that seccomp(2) loads.
//
// A rule list is ordered; for one call the first rule whose conditions hold
// decides, and a call without a rule is allowed. Calls newer than the newest
// one reviewed here answer ENOSYS, so that a new kernel brings no new way in
// before somebody has looked at it.
package seccomp
