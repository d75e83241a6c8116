package ticket

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"path"
	"slices"
	"strings"

	"github.com/bawn-dev/bawn"
)

// A Stdin says what a command can read from its standard input. The zero Stdin
// is nothing at all.
type Stdin struct {
	Live   bool     // a terminal or a pipe that is still written to
	Digest [32]byte // SHA-256 of all of it, where it is known; zero for none
}

// A Meaning is all of an action that changes what it does. What the agent says
// about the action is no part of it. The zero Meaning has no digest.
type Meaning struct {
	Argv       []string       // exactly as it is executed; at least one
	Dir        string         // absolute and clean
	Env        []string       // NAME=value, all of it, in any order
	Stdin      Stdin          //
	Background bool           // nobody waits for it
	Limits     bawn.Resources // of this command
	Session    string         // that it runs in
	Plan       [32]byte       // SHA-256 of the plan of the sandbox it runs in
}

// Digest returns the SHA-256 of the meaning's one encoding. It errs without a
// command, session or plan, for a directory that is not absolute and clean, a
// NUL, a variable that is set twice, and a limit that is negative or no number.
//
// Names and values of the environment count: PATH, LD_PRELOAD and
// GIT_SSH_COMMAND decide what runs as much as argv does.
func Digest(m Meaning) ([32]byte, error) {
	if err := m.check(); err != nil {
		return [32]byte{}, err
	}
	return sha256.Sum256(m.encode()), nil
}

func (m Meaning) check() error {
	l := m.Limits
	switch {
	case len(m.Argv) == 0 || m.Argv[0] == "":
		return errors.New("the action has no command; want at least argv[0]")
	case !path.IsAbs(m.Dir) || path.Clean(m.Dir) != m.Dir:
		return fmt.Errorf("directory %q: want it absolute and clean", m.Dir)
	case m.Session == "" || m.Plan == [32]byte{}:
		return errors.New("the action has no session or no plan; want both, since the same command means something else in another sandbox")
	case m.Stdin.Live && m.Stdin.Digest != [32]byte{}:
		return errors.New("the standard input is live and has a digest; want one of both")
	case min(l.CPUShares, l.MemoryMB, l.TmpMB, l.PIDs, l.OpenFiles, l.FileSizeMB, int64(l.Timeout)) < 0 || !(l.CPUs >= 0) || math.IsInf(l.CPUs, 0):
		return fmt.Errorf("limits %+v: want none below 0, and finite numbers", l)
	}
	for _, s := range slices.Concat(m.Argv, m.Env, []string{m.Dir}) {
		if strings.IndexByte(s, 0) >= 0 {
			return fmt.Errorf("%q has a NUL, where the kernel would cut it", s)
		}
	}
	return checkNames(m.sorted())
}

func (m Meaning) sorted() []variable {
	var out []variable
	for _, kv := range m.Env {
		name, value, set := strings.Cut(kv, "=")
		out = append(out, variable{name, value, set})
	}
	slices.SortFunc(out, func(a, b variable) int { return strings.Compare(a.name, b.name) })
	return out
}

type variable struct {
	name, value string
	set         bool // has a "="
}

func checkNames(sorted []variable) error {
	for i, v := range sorted {
		if v.name == "" || !v.set {
			return fmt.Errorf("environment %q: want NAME=value", v.name)
		}
		if i > 0 && sorted[i-1].name == v.name {
			return fmt.Errorf("environment %q is set twice, and programs disagree on which counts; want it once", v.name)
		}
	}
	return nil
}

// meaningVersion changes with the encoding, so that no digest of one version
// is one of another.
const meaningVersion = "bawn meaning 1"

// encode writes the fields in their order, everything of variable length behind
// its length, so that no two meanings share an encoding. Values of variables
// stand as digests.
func (m Meaning) encode() []byte {
	var e encoder
	e.text(meaningVersion)
	e.number(uint64(len(m.Argv)))
	for _, a := range m.Argv {
		e.text(a)
	}
	e.text(m.Dir)
	e.number(uint64(len(m.Env)))
	for _, v := range m.sorted() {
		e.text(v.name)
		e.digest(sha256.Sum256([]byte(v.value)))
	}
	e.flag(m.Stdin.Live)
	e.digest(m.Stdin.Digest)
	e.flag(m.Background)
	l := m.Limits
	for _, n := range []int64{l.CPUShares, l.MemoryMB, l.TmpMB, l.PIDs, l.OpenFiles, l.FileSizeMB, int64(l.Timeout)} {
		e.number(uint64(n))
	}
	e.number(math.Float64bits(l.CPUs + 0)) // -0 is 0
	e.text(m.Session)
	e.digest(m.Plan)
	return e
}

// An encoder appends numbers in 8 bytes, big-endian, and text behind its length.
type encoder []byte

func (e *encoder) number(n uint64)   { *e = binary.BigEndian.AppendUint64(*e, n) }
func (e *encoder) digest(d [32]byte) { *e = append(*e, d[:]...) }

func (e *encoder) text(s string) {
	e.number(uint64(len(s)))
	*e = append(*e, s...)
}

func (e *encoder) flag(f bool) {
	if f {
		*e = append(*e, 1)
		return
	}
	*e = append(*e, 0)
}
