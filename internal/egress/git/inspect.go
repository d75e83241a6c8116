package git

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
)

// Limits bound the memory and disk that a push may use. Zero fields stand for
// the defaults.
type Limits struct {
	Commands int   // bytes of commands and push options: 1 MiB
	Updates  int   // refs in one push: 4,096
	Spool    int64 // bytes of a pack held back until it is judged: 1 GiB
	Inflated int64 // bytes that a pack may inflate to until then: 8 GiB
}

// Limits of the proofs of one push: updates that need one, and commits that
// they may visit together.
const (
	maxWalks = 256
	maxSteps = 1 << 20
)

func (l Limits) filled() Limits {
	if l.Commands == 0 {
		l.Commands = 1 << 20
	}
	if l.Updates == 0 {
		l.Updates = 4096
	}
	if l.Spool == 0 {
		l.Spool = 1 << 30
	}
	if l.Inflated == 0 {
		l.Inflated = 8 << 30
	}
	return l
}

// An Inspector reads pushes. Its zero value works.
type Inspector struct {
	Limits Limits

	// Dir is where a pack is spooled that is too large for memory, in a file
	// without a name; "" is the system's directory for temporary files.
	Dir string

	// Graph remembers the commits of a session's earlier pushes; it may be nil.
	// The first commits of every pack go into it.
	Graph *Graph

	// Early, if not nil, is asked when a push's commands are known and before
	// its pack is read, with every update taken for a fast-forward. What
	// [Allow] refuses even then needs no proof. Its error ends the inspection
	// and is returned as it is; no error permits nothing.
	Early func(Operation) error

	// Packs is how many packs may be inspected at a time, over all copies of an
	// Inspector; further ones are refused. Nil is no bound.
	Packs chan struct{}
}

// errPacks says that too many packs are looked at.
var errPacks = errors.New("several pushes of this session are looked at already; push one after the other")

// room takes a place in Packs. free gives it back, once.
func (in Inspector) room() (free func(), err error) {
	if in.Packs == nil {
		return func() {}, nil
	}
	select {
	case in.Packs <- struct{}{}:
		return sync.OnceFunc(func() { <-in.Packs }), nil
	default:
		return nil, errPacks
	}
}

// Push reads a request to receive-pack: commands, push options, and as much of
// the pack as it takes to show that every update of an existing ref is a
// fast-forward. It returns op with its findings, and the same bytes again:
// those that were read, then the rest of r. The caller closes replay, which
// frees the spool; r stays the caller's.
//
// An update that can't be shown to be a fast-forward is no error: it is
// returned with FastForward false and the reason. Errors are bytes that git's
// server would not take, a limit, or an end of the stream.
func (in Inspector) Push(op Operation, r io.Reader) (Operation, io.ReadCloser, error) {
	limits := in.Limits.filled()
	buffered := bufio.NewReader(r)
	lines := &pktReader{r: buffered, max: limits.Commands}
	head, err := readCommands(lines, limits.Updates)
	if err != nil {
		return op, nil, err
	}
	op.Kind, op.Discovery, op.Complete = Push, false, true
	op.Updates, op.Options = head.updates, head.options
	if in.Early != nil {
		if err := in.Early(hopeful(op)); err != nil {
			return op, nil, err
		}
	}
	if !head.sendsPack() {
		return op, io.NopCloser(&lines.kept), nil
	}
	if magic, err := buffered.Peek(4); err != nil || string(magic) != "PACK" {
		return op, nil, fmt.Errorf("%q follows the commands (%v); want a pack", magic, err)
	}
	return in.withPack(op, head, &lines.kept, buffered, limits)
}

// hopeful returns op as if all of it could be proven.
func hopeful(op Operation) Operation {
	op.Updates = slices.Clone(op.Updates)
	for i := range op.Updates {
		op.Updates[i].FastForward = true
	}
	return op
}

// withPack proves what needs a proof and puts the stream together again.
func (in Inspector) withPack(op Operation, head *commands, kept *bytes.Buffer, r io.Reader, limits Limits) (Operation, io.ReadCloser, error) {
	free, err := in.room()
	if err != nil {
		return op, nil, err
	}
	held := &spool{dir: in.Dir, max: limits.Spool, free: free}
	if err := in.prove(op.Updates, head, r, held, limits); err != nil {
		return op, nil, errors.Join(err, held.Close())
	}
	return op, replay{io.MultiReader(kept, held.from(0), r), held}, nil
}

type replay struct {
	io.Reader
	io.Closer
}

// prove fills in FastForward and Why of updates.
func (in Inspector) prove(updates []Update, head *commands, r io.Reader, held *spool, limits Limits) error {
	known := in.Graph
	if known == nil {
		known = &Graph{}
	}
	walks, steps, shallow := map[int]*walk{}, maxSteps, head.shallowSet()
	for i, u := range updates {
		if u.Create() || u.Delete() {
			continue
		}
		if walks[i] = newWalk(u, shallow, &steps, known); len(walks) > maxWalks {
			return fmt.Errorf("the push moves more than %d existing refs; push fewer at once", maxWalks)
		}
	}
	err := readCommits(walks, known, head.idLen, r, held, limits)
	for i, w := range walks {
		updates[i].FastForward = w.found
		if !w.found {
			updates[i].Why = unproven(updates[i], w)
		}
	}
	return err
}

// readCommits reads the pack until every walk is over.
func readCommits(walks map[int]*walk, known *Graph, idLen int, r io.Reader, held *spool, limits Limits) error {
	over := func() bool {
		for _, w := range walks {
			if !w.over() {
				return false
			}
		}
		return true
	}
	p := &packReader{
		in: &countingReader{r: bufio.NewReader(io.TeeReader(r, held))}, spool: held, idLen: idLen,
		maxInflated: limits.Inflated,
		byPlace:     map[int64][]byte{}, byID: map[string][]byte{}, waiting: map[int64]bool{},
		report: func(id string, parents []string) {
			known.add(id, parents)
			for _, w := range walks {
				w.learn(id, known)
			}
		},
	}
	if err := p.read(over); !over() {
		return err
	}
	return nil // nothing hangs on the pack any more; it is the server's to judge
}

func unproven(u Update, w *walk) string {
	switch {
	case w.awaited[u.New]:
		return fmt.Sprintf("the commit %.12s is not in the pack, so nothing shows that it descends from %.12s", u.New, u.Old)
	case len(w.awaited) == 0:
		return fmt.Sprintf("%.12s does not descend from %.12s", u.New, u.Old)
	}
	return fmt.Sprintf("the commits that were sent do not lead from %.12s back to %.12s", u.New, u.Old)
}
