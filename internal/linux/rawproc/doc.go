// Package rawproc starts a process in new namespaces without a second Go
// runtime. The child's work is compiled beforehand into a Program, a flat list
// of system calls. Between fork and exec a small loop carries them out and
// reports the index of a failed one, so that the error names the step.
//
// The child then stays as PID 1 of its PID namespace. It starts commands when
// its parent says so over an inherited socket, and reaps every orphan. When the
// parent's end of the socket closes, it ends, and the namespace with it.
//
// Everything that runs in the child is in child_unsafe_linux.go, and pass in
// gate_unsafe_linux.go: it waits there for the rest of a program that is not
// written yet (Await). It allocates nothing, grows no stack, takes no lock and
// reads no variable. The child has the program's own memory
// (memory_unsafe_linux.go), which includes its stack, and memory shared with its
// parent, but neither the parent's heap nor its variables. That keeps what Bawn
// knows away from the guest's first process, and spares both a copy of each page
// that either writes to.
package rawproc
