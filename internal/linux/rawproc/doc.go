// Package rawproc starts a process in new namespaces without a second Go
// runtime. What the child has to do is compiled beforehand into a Program, a
// flat list of system calls; between fork and exec one small loop carries them
// out and, where one fails, tells its index, so that the error names the step.
//
// The child then stays as PID 1 of its PID namespace: it starts commands when
// its parent says so over a socket it inherited, reaps every orphan, and ends,
// and the whole namespace with it, as soon as the parent's end of that socket
// closes, whatever closed it.
//
// Everything that runs in the child is in child_unsafe_linux.go, and pass in
// gate_unsafe_linux.go: it waits there for the rest of a program that is not
// written yet (Await). It allocates
// nothing, grows no stack, takes no lock and reads no variable: the child has
// the program's own memory (memory_unsafe_linux.go), which holds its stack too,
// and what it shares with its parent, but neither the parent's heap nor its
// variables. That keeps what Bawn knows away from the guest's first process, and
// spares both a copy of each page that either writes to.
package rawproc
