package sandbox

import "context"

// Programs say what becomes of the programs of a guest, and are told of them. A provider
// that can hold execve(2) asks for each.
type Programs struct {
	// Rule decides about a program; nil: each is started. Nothing else of the guest's that
	// is held goes on before it has returned.
	Rule func(Program) ProgramRule
	// Started is told of each program that the kernel is about to start, with its process,
	// and may not block for long; nil for none. What the kernel can't start is among them.
	Started func(Program)
	// Ended is told of the end of a process that was told to Started, and with which exit
	// code as shells have it; nil where the kernel does not say. Not of those that end with
	// the sandbox.
	Ended func(pid int, code *int)
}

// A ProgramRule is what becomes of a program. The zero rule lets it start.
type ProgramRule struct {
	Refused *Denial // it does not start
	// Ask asks a human, while the program waits, and returns why it does not start, or nil.
	// ctx ends with the sandbox and with the process.
	Ask func(ctx context.Context) *Denial
}

// A Program is one that a guest is about to execute, as a supervisor saw it: another
// thread of the guest may change the words before the kernel reads them.
type Program struct {
	// Names are the names by which the program may be called: the file, links
	// resolved; then, if their last parts differ, the path by which it was called and
	// its own first word.
	Names []string
	Args  []string // without the first word; of very many the first, and those that are flags
	Dir   string   // in which it starts, "" where that could not be seen
	// PID and Parent are processes of the host, for Started; 0 where that is not known.
	PID, Parent int
}
