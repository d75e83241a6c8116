package supervise

import (
	"bytes"
	"context"
	"encoding/binary"
	"path"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/linux/rawproc"
	"github.com/bawn-dev/bawn/internal/sandbox"
)

// Limits of the words that are read of a program.
const (
	maxArgs  = 1 << 17   // words; a longer list is refused as the kernel refuses it
	maxBytes = 2 << 20   // of all of them (execve(2) has a quarter of the stack's limit)
	maxFirst = 256       // words that are judged where there are more, and as many flags
	maxWord  = 128 << 10 // one of them (MAX_ARG_STRLEN)
)

// exec decides execve(2) and execveat(2), and leaves allowed ones to the kernel. The
// words can change by then, if the caller has threads or shares its memory: a rule
// about programs is no wall, the sandbox around them is.
func (c *call) exec(dirfd int32, pathAddr, argvAddr uint64, flags int) error {
	if c.s.programs == nil || c.isBawns() {
		return c.carryOn()
	}
	p, err := c.program(dirfd, pathAddr, argvAddr, flags)
	if err == unix.EFAULT {
		c.s.onDenial(unseen)
	}
	if err != nil {
		return err // as the kernel would
	}
	rule := c.s.programs.rule(p)
	switch {
	case rule.Refused != nil:
		c.s.onDenial(*rule.Refused)
		return unix.EACCES
	case rule.Ask == nil:
		return c.starts(p)
	}
	return c.detach(func(later *call) error {
		if d := later.asked(rule.Ask); d != nil {
			c.s.onDenial(*d)
			return unix.EACCES
		}
		again, err := later.program(dirfd, pathAddr, argvAddr, flags)
		if err != nil {
			return err
		}
		if !same(p, again) { // the yes was for other words
			c.s.onDenial(changed(p))
			return unix.EACCES
		}
		return later.starts(p)
	})
}

// asked waits for a human, as long as the caller waits for its program.
func (c *call) asked(ask func(context.Context) *sandbox.Denial) *sandbox.Denial {
	ctx, end := context.WithCancel(context.Background())
	defer end()
	go func() {
		look := time.NewTicker(lookAgain)
		defer look.Stop()
		for {
			select {
			case <-c.s.stop:
			case <-look.C:
				if c.valid() == nil {
					continue
				}
			case <-ctx.Done():
				return
			}
			end()
			return
		}
	}()
	return ask(ctx)
}

// lookAgain is how long a question may outlive the process that waits for its answer.
const lookAgain = 500 * time.Millisecond

// changed is the refusal of a program whose words are other ones after the answer.
func changed(p sandbox.Program) sandbox.Denial {
	return sandbox.Denial{
		Kind: bawn.Command, Operation: bawn.Exec, Resource: p.Names[0], Rule: "builtin:program-changed",
		Reason: "its words changed while a human was asked about it", Remedy: "start it again, from a thread whose memory no other one writes",
	}
}

// same reports whether two readings are of the same program.
func same(a, b sandbox.Program) bool {
	return slices.Equal(a.Names, b.Names) && slices.Equal(a.Args, b.Args) && a.Dir == b.Dir
}

// starts tells of a program and leaves it to the kernel.
func (c *call) starts(p sandbox.Program) error {
	c.s.programs.starts(int(c.TID), p)
	return c.carryOn()
}

// isBawns reports whether the caller is a process of Bawn's that is about to become a
// command of the session, which has been judged.
func (c *call) isBawns() bool { return c.Nr == unix.SYS_EXECVE && c.Args[5] == rawproc.Mark() }

// unseen is the refusal of a program whose words can't be read: the process that starts it
// runs a program of another user that may be executed and not read.
var unseen = sandbox.Denial{
	Kind: bawn.Command, Operation: bawn.Exec, Resource: "a program whose words can't be read", Rule: "builtin:program-unseen",
	Reason: "a rule about commands holds programs, and the words of this one can't be read", Remedy: "start it from a program that may be read",
}

// carryOn lets the kernel carry the call out.
func (c *call) carryOn() error {
	if err := c.s.listener.Continue(c.Call); err != nil {
		return err
	}
	return errAnswered
}

// program reads the program of an execve. Its strings mostly lie in one page of the
// caller, which is read once; that the caller is still there is asked at the end.
func (c *call) program(dirfd int32, pathAddr, argvAddr uint64, flags int) (p sandbox.Program, err error) {
	w := window{c: c, buf: c.buf.path[:]}
	given, err := w.at(pathAddr)
	if err != nil {
		return p, err
	}
	args, err := w.words(argvAddr)
	if err != nil {
		return p, err
	}
	p.Dir, _ = c.base(unix.AT_FDCWD) // a directory that is gone judges nothing
	fd, named, err := c.programFile(dirfd, given, p.Dir, flags)
	if err != nil {
		return p, err
	}
	defer unix.Close(fd)
	real, err := realPath(fd)
	if err != nil {
		return p, err
	}
	names := []string{real, named}
	if len(args) > 0 {
		names, p.Args = append(names, args[0]), judged(args[1:])
	}
	p.Names = different(names)
	return p, c.valid()
}

// programFile opens the file that is to be executed, and returns how the caller names
// it, if by a name. A relative name counts from dir where dirfd is AT_FDCWD.
func (c *call) programFile(dirfd int32, given, dir string, flags int) (fd int, named string, err error) {
	if given == "" && flags&unix.AT_EMPTY_PATH != 0 {
		fd, err = c.ownDescriptor(int(dirfd))
		return fd, "", err
	}
	abs, err := c.programPath(dirfd, given, dir)
	if err != nil {
		return -1, "", err
	}
	if n, ok := c.descriptorPath(abs); ok {
		fd, err = c.ownDescriptor(n)
		return fd, "", err
	}
	if c.isOwnProgram(path.Clean(abs)) {
		fd, err = unix.Open(c.proc("exe"), unix.O_PATH|unix.O_CLOEXEC, 0)
	} else {
		fd, err = c.openPath(abs, 0)
	}
	return fd, given, err
}

// programPath is the absolute path of a file that is to be executed.
func (c *call) programPath(dirfd int32, given, dir string) (abs string, err error) {
	switch {
	case given == "":
		return "", unix.ENOENT
	case len(given) >= unix.PathMax:
		return "", unix.ENAMETOOLONG
	case path.IsAbs(given):
		return c.expand(given)
	case dirfd != unix.AT_FDCWD:
		dir, err = c.base(dirfd)
	case dir == "":
		err = unix.ENOENT
	}
	if err != nil {
		return "", err
	}
	return c.expand(dir + "/" + given)
}

// isOwnProgram reports whether a path is the caller's link to the program that it runs.
func (c *call) isOwnProgram(name string) bool {
	pid, ok := strings.CutPrefix(name, "/proc/")
	pid, is := strings.CutSuffix(pid, "/exe")
	return ok && is && (pid == "self" || pid == "thread-self" || pid == c.ownPID())
}

// different are the names of which the last parts differ.
func different(names []string) []string {
	kept := names[:1]
	for _, n := range names[1:] {
		if n != "" && !slices.ContainsFunc(kept, func(k string) bool { return path.Base(k) == path.Base(n) }) {
			kept = append(kept, n)
		}
	}
	return kept
}

// judged are the words by which a program is judged: of very many the first, and then
// those that are flags. If there are very many options before a subcommand, most are
// left out.
func judged(args []string) []string {
	if len(args) <= maxFirst {
		return args
	}
	if n := options(args); n > maxFirst/2 {
		return judged(slices.Concat(args[:maxFirst/2], args[n:]))
	}
	few, flags := slices.Clone(args[:maxFirst]), 0
	for _, a := range args[maxFirst:] {
		if strings.HasPrefix(a, "-") && flags < maxFirst {
			few = append(few, a)
			flags++
		}
	}
	return few
}

// options returns at which word the last option before a subcommand begins, if a
// subcommand follows. The first two words in a row that are no flags are an option's
// value and a subcommand, or a subcommand and its argument.
func options(args []string) int {
	for n := range args {
		plain := !strings.HasPrefix(args[n], "-")
		if plain && (n == 0 || !strings.HasPrefix(args[n-1], "-")) {
			return max(0, n-2)
		}
	}
	return 0
}

// words reads a list of strings of the caller that a null pointer ends.
func (w *window) words(addr uint64) ([]string, error) {
	if addr == 0 {
		return nil, nil
	}
	var pointers []uint64
	for {
		p, err := w.pointer(addr)
		if err != nil {
			return nil, err
		}
		if p == 0 {
			return w.strings(pointers)
		}
		if pointers = append(pointers, p); len(pointers) > maxArgs {
			return nil, unix.E2BIG
		}
		addr += 8
	}
}

// strings reads the strings at pointers.
func (w *window) strings(pointers []uint64) ([]string, error) {
	out := make([]string, 0, len(pointers))
	total := 0
	for _, p := range pointers {
		s, err := w.at(p)
		if err != nil {
			return nil, err
		}
		if total += len(s) + 1; total > maxBytes {
			return nil, unix.E2BIG
		}
		out = append(out, s)
	}
	return out, nil
}

// A window is a piece of the caller's memory.
type window struct {
	c     *call
	start uint64
	data  []byte
	buf   []byte // a page
}

// at returns the string at an address.
func (w *window) at(addr uint64) (string, error) {
	var long []byte
	for len(long) <= maxWord {
		rest, err := w.from(addr)
		if err != nil {
			return "", err
		}
		if i := bytes.IndexByte(rest, 0); i >= 0 {
			return string(append(long, rest[:i]...)), nil
		}
		long = append(long, rest...)
		addr += uint64(len(rest))
	}
	return "", unix.E2BIG
}

// pointer returns the pointer at an address.
func (w *window) pointer(addr uint64) (uint64, error) {
	var word [8]byte
	for n := 0; n < len(word); {
		rest, err := w.from(addr + uint64(n))
		if err != nil {
			return 0, err
		}
		n += copy(word[n:], rest)
	}
	return binary.NativeEndian.Uint64(word[:]), nil
}

// from returns the memory from an address to the end of its page.
func (w *window) from(addr uint64) ([]byte, error) {
	if addr < w.start || addr-w.start >= uint64(len(w.data)) {
		n, err := w.c.read(addr, w.buf[:4096-int(addr%4096)])
		if err != nil {
			return nil, unix.EFAULT
		}
		w.start, w.data = addr, w.buf[:n]
	}
	return w.data[addr-w.start:], nil
}
