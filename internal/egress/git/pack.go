package git

import (
	"bufio"
	"compress/zlib"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
)

// Types of objects in a pack (gitformat-pack(5)).
const (
	objCommit   = 1
	objTree     = 2
	objBlob     = 3
	objTag      = 4
	objOfsDelta = 6
	objRefDelta = 7
)

// learnAhead is how far into a pack its commits are read for the Graph where
// no proof needs them.
const learnAhead = 1 << 20

// Limits of the memory used while a pack is read. Other objects than commits
// are inflated to find their end, and dropped.
const (
	maxCommit  = 1 << 20  // bytes of one commit's text
	maxCommits = 64 << 20 // bytes of all commits' texts, with perCommit for each
	perCommit  = 512      // what else a commit costs in memory
	maxPending = 200_000  // deltas whose base has not been seen
	maxRounds  = 64       // length of a chain among these; git makes 50
)

// A packReader reads the objects of a pack and reports its commits. It reads
// from a stream whose bytes go to a spool, and goes back to the spool for
// deltas that came before their base.
type packReader struct {
	in    *countingReader
	spool *spool // holds the pack from byte 0 on
	idLen int

	inflated    int64 // bytes inflated so far
	maxInflated int64
	kept        int // bytes of commits held

	zlib    io.ReadCloser
	byPlace map[int64][]byte  // text of commits by their offset in the pack
	byID    map[string][]byte // the same by id
	pending []delta
	waiting map[int64]bool // offsets of pending
	report  func(id string, parents []string)

	// others says that something else than a whole commit has come: git packs
	// commits first.
	others bool
}

// A delta is an object that is described by its difference to a base, which
// has an id or an offset.
type delta struct {
	at, data, base int64
	baseID         string
	size           int64
}

// read goes through the pack until done says that it knows enough, or to the
// pack's end.
func (p *packReader) read(done func() bool) error {
	var head [12]byte
	if _, err := io.ReadFull(p.in, head[:]); err != nil {
		return fmt.Errorf("read the pack's head: %w", err)
	}
	version := binary.BigEndian.Uint32(head[4:])
	if string(head[:4]) != "PACK" || version != 2 && version != 3 {
		return fmt.Errorf("the pack begins with %q; want PACK, version 2 or 3", head)
	}
	for range binary.BigEndian.Uint32(head[8:]) {
		if done() && (p.others || p.spool.size > learnAhead) {
			return nil
		}
		if err := p.object(); err != nil {
			return err
		}
	}
	return p.settle(done)
}

// object reads one object.
func (p *packReader) object() error {
	at := p.in.n
	kind, size, err := p.head()
	if err != nil {
		return err
	}
	d := delta{at: at, size: size}
	p.others = p.others || kind != objCommit && kind != objTag
	switch kind {
	case objCommit:
		text, err := p.inflate(p.in, size, true)
		if err != nil {
			return err
		}
		return p.commit(at, text)
	case objTree, objBlob, objTag:
		_, err := p.inflate(p.in, size, false)
		return err
	case objOfsDelta:
		d.base, err = p.baseOffset(at)
	case objRefDelta:
		d.baseID, err = p.baseID()
	default:
		return fmt.Errorf("object type %d in the pack; want a commit, tree, blob, tag or delta", kind)
	}
	if err != nil {
		return err
	}
	d.data = p.in.n
	return p.delta(d)
}

// head reads the type and the inflated size that begin an object.
func (p *packReader) head() (kind byte, size int64, err error) {
	b, err := p.in.ReadByte()
	if err != nil {
		return 0, 0, cut(err)
	}
	kind, size = b>>4&7, int64(b&15)
	for shift := 4; b&0x80 != 0; shift += 7 {
		if b, err = p.in.ReadByte(); err != nil {
			return 0, 0, cut(err)
		}
		if shift > 46 {
			return 0, 0, errors.New("an object in the pack is too large")
		}
		size |= int64(b&0x7f) << shift
	}
	return kind, size, nil
}

// baseOffset reads the distance to the base of an OFS_DELTA.
func (p *packReader) baseOffset(at int64) (int64, error) {
	var distance int64
	for i := 0; ; i++ {
		b, err := p.in.ReadByte()
		if err != nil {
			return 0, cut(err)
		}
		if i > 6 {
			return 0, errors.New("a delta in the pack reaches too far back")
		}
		distance = distance<<7 | int64(b&0x7f)
		if b&0x80 == 0 {
			break
		}
		distance++
	}
	if distance <= 0 || distance > at {
		return 0, errors.New("a delta in the pack has a base outside of it")
	}
	return at - distance, nil
}

func (p *packReader) baseID() (string, error) {
	id := make([]byte, p.idLen/2)
	if _, err := io.ReadFull(p.in, id); err != nil {
		return "", cut(err)
	}
	return hex.EncodeToString(id), nil
}

// delta reads a delta in the stream: applied to a commit it makes a commit. A
// base that is no commit so far may turn out to be one if it is a pending
// delta itself, or is named by an id.
func (p *packReader) delta(d delta) error {
	base := p.base(d)
	later := base == nil && (d.baseID != "" || p.waiting[d.base])
	program, err := p.inflate(p.in, d.size, base != nil)
	if err != nil {
		return err
	}
	if later {
		if len(p.pending) >= maxPending {
			return errors.New("the pack has too many deltas against objects that it does not have")
		}
		p.pending = append(p.pending, d)
		p.waiting[d.at] = true
	}
	if base == nil {
		return nil
	}
	return p.resolve(d, base, program)
}

func (p *packReader) base(d delta) []byte {
	if d.baseID != "" {
		return p.byID[d.baseID]
	}
	return p.byPlace[d.base]
}

func (p *packReader) resolve(d delta, base, program []byte) error {
	text, err := patch(base, program)
	if err != nil {
		return err
	}
	return p.commit(d.at, text)
}

// settle goes back to the deltas whose base came after them.
func (p *packReader) settle(done func() bool) error {
	for range maxRounds {
		if done() || len(p.pending) == 0 {
			return nil
		}
		before := len(p.pending)
		if err := p.round(); err != nil {
			return err
		}
		if len(p.pending) == before {
			return nil
		}
	}
	return nil
}

func (p *packReader) round() error {
	left := p.pending[:0]
	for _, d := range p.pending {
		base := p.base(d)
		if base == nil {
			left = append(left, d)
			continue
		}
		program, err := p.inflate(bufio.NewReader(p.spool.from(d.data)), d.size, true)
		if err != nil {
			return err
		}
		if err := p.resolve(d, base, program); err != nil {
			return err
		}
	}
	p.pending = left
	return nil
}

// commit takes in the text of a commit.
func (p *packReader) commit(at int64, text []byte) error {
	if p.kept += len(text) + perCommit; p.kept > maxCommits {
		return errors.New("the pack has more commits than can be looked at; push in smaller steps")
	}
	parents, err := commitParents(text, p.idLen)
	if err != nil {
		return err
	}
	id := commitID(text, p.idLen)
	p.byPlace[at], p.byID[id] = text, text
	p.report(id, parents)
	return nil
}

// inflate reads a zlib stream of exactly size bytes, and returns them if they
// are kept. The reader is an io.ByteReader, so nothing behind the stream is
// read (compress/flate).
func (p *packReader) inflate(r io.Reader, size int64, keep bool) ([]byte, error) {
	if p.inflated += size; p.inflated > p.maxInflated {
		return nil, errors.New("the pack inflates to more than may be looked at; push in smaller steps")
	}
	if keep && size > maxCommit {
		return nil, fmt.Errorf("a commit in the pack has %d bytes; want at most %d", size, maxCommit)
	}
	if err := p.restart(r); err != nil {
		return nil, fmt.Errorf("read an object of the pack: %w", cut(err))
	}
	var text []byte
	var n int64
	var err error
	if keep {
		text, err = io.ReadAll(io.LimitReader(p.zlib, size+1))
		n = int64(len(text))
	} else {
		n, err = io.Copy(io.Discard, io.LimitReader(p.zlib, size+1))
	}
	if err != nil {
		return nil, fmt.Errorf("read an object of the pack: %w", cut(err))
	}
	if n != size {
		return nil, fmt.Errorf("an object of the pack has not the %d bytes that it announces", size)
	}
	return text, nil
}

func (p *packReader) restart(r io.Reader) (err error) {
	if p.zlib == nil {
		p.zlib, err = zlib.NewReader(r)
		return err
	}
	return p.zlib.(zlib.Resetter).Reset(r, nil)
}

// cut turns the end of the stream into the error that it is in mid-pack.
func cut(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// A countingReader knows how many bytes were taken from it.
type countingReader struct {
	r *bufio.Reader
	n int64
}

func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

func (c *countingReader) ReadByte() (byte, error) {
	b, err := c.r.ReadByte()
	if err == nil {
		c.n++
	}
	return b, err
}
