package sandbox

// A Program is one that a guest is about to execute, as a supervisor saw it: another
// thread of the guest may change the words before the kernel reads them.
type Program struct {
	// Names are what the program may be called: the file, links resolved, first; then
	// the path by which it was called and its own first word, where their last parts
	// differ.
	Names []string
	Args  []string // without the first word; of very many the first, and those that are flags
	Dir   string   // in which it starts, "" where that could not be seen
}
