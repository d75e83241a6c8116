// Package native is the provider that makes sandboxes of the kernel's own parts:
// namespaces and mounts, Landlock and seccomp. It compiles a plan of package layout
// to system calls for the guest's first process. Its second rung needs no
// namespaces.
package native
