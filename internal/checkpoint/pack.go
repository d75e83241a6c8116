package checkpoint

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// The format of a pack: packMagic, frames, the table, the footer. A frame holds
// one object or several, as zstd or, where that saves nothing, as they are. The
// table is sorted by digest. Numbers are little-endian.
//
//	table entry: digest [32], offset u64, stored u32, opened u32, at u32, length u32
//	footer:      offset of the table u64, entries u64, SHA-256 of the table [32], packMagic
const (
	packMagic  = "BAWNPAK1"
	tableEntry = 32 + 8 + 4*4
	packFooter = 8 + 8 + 32 + len(packMagic)

	blockSize = 512 << 10 // small objects are compressed together
	pieceSize = 4 << 20   // the most that one object holds
	maxPack   = 8 << 30   // bytes of a pack
	maxTable  = 512 << 20 // bytes of its table
)

// A place is where an object is in a pack.
type place struct {
	object         Digest
	offset         uint64
	stored, opened uint32 // bytes of the frame, in the pack and opened
	at, length     uint32 // of the object in the opened frame
}

func (p *place) append(b []byte) []byte {
	b = append(b, p.object[:]...)
	b = binary.LittleEndian.AppendUint64(b, p.offset)
	for _, v := range []uint32{p.stored, p.opened, p.at, p.length} {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	return b
}

// A pack is one that can be read.
type pack struct {
	name  string
	f     *os.File
	table []byte
	size  int64
}

// openPack opens a pack. A damaged one is an error.
func openPack(path string) (*pack, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	p := &pack{name: filepath.Base(path), f: f}
	if err := p.readTable(); err != nil {
		f.Close()
		return nil, fmt.Errorf("%q: %w", path, err)
	}
	return p, nil
}

var errPack = errors.New("the pack is damaged")

func (p *pack) readTable() error {
	info, err := p.f.Stat()
	if err != nil {
		return err
	}
	p.size = info.Size()
	var foot [packFooter]byte
	if p.size < int64(len(packMagic)+packFooter) || p.size > maxPack {
		return errPack
	}
	if _, err := p.f.ReadAt(foot[:], p.size-int64(packFooter)); err != nil {
		return err
	}
	from, n := binary.LittleEndian.Uint64(foot[:]), binary.LittleEndian.Uint64(foot[8:])
	if string(foot[48:]) != packMagic || n > maxTable/tableEntry || from > uint64(p.size) || n > uint64(p.size)/tableEntry || from+n*tableEntry+uint64(packFooter) != uint64(p.size) {
		return errPack
	}
	p.table = make([]byte, n*tableEntry)
	if _, err := p.f.ReadAt(p.table, int64(from)); err != nil {
		return err
	}
	if sum := sha256.Sum256(p.table); !bytes.Equal(sum[:], foot[16:48]) {
		return errPack
	}
	return nil
}

func (p *pack) objects() int { return len(p.table) / tableEntry }

func (p *pack) place(i int) (l place) {
	b := p.table[i*tableEntry:]
	copy(l.object[:], b)
	l.offset = binary.LittleEndian.Uint64(b[32:])
	for k, v := range []*uint32{&l.stored, &l.opened, &l.at, &l.length} {
		*v = binary.LittleEndian.Uint32(b[40+4*k:])
	}
	return l
}

func (p *pack) find(d Digest) (place, bool) {
	i := sort.Search(p.objects(), func(i int) bool { return bytes.Compare(p.table[i*tableEntry:i*tableEntry+32], d[:]) >= 0 })
	if i == p.objects() || !bytes.Equal(p.table[i*tableEntry:i*tableEntry+32], d[:]) {
		return place{}, false
	}
	return p.place(i), true
}

// open returns the opened frame in which an object is.
func (p *pack) open(l place) ([]byte, error) {
	if l.stored > maxFrame || l.opened > maxFrame || uint64(l.at)+uint64(l.length) > uint64(l.opened) {
		return nil, errPack
	}
	if l.offset+uint64(l.stored) > uint64(p.size) || l.offset > uint64(p.size) {
		return nil, errPack
	}
	raw := make([]byte, l.stored)
	if _, err := p.f.ReadAt(raw, int64(l.offset)); err != nil {
		return nil, err
	}
	if l.stored == l.opened {
		return raw, nil
	}
	d, err := decoder()
	if err != nil {
		return nil, err
	}
	out, err := d.DecodeAll(raw, make([]byte, 0, l.opened))
	if err != nil || len(out) != int(l.opened) {
		return nil, fmt.Errorf("%w: %w", errPack, err)
	}
	return out, nil
}

// maxFrame bounds the uncompressed size of a frame.
const maxFrame = pieceSize + blockSize

// decoder is shared: DecodeAll may be called from any goroutine.
var decoder = sync.OnceValues(func() (*zstd.Decoder, error) {
	return zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(2*maxFrame))
})

// A packer writes a new pack. Blocks of several goroutines may write to it.
type packer struct {
	dir string
	has func(Digest) bool

	mu     sync.Mutex
	f      *os.File
	w      *bufio.Writer
	offset uint64
	places []place
	taken  map[Digest]bool
	err    error
}

// claim reports whether an object is to be added: it is new.
func (w *packer) claim(d Digest) bool {
	if w.has(d) {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.taken[d] {
		return false
	}
	if w.taken == nil {
		w.taken = map[Digest]bool{}
	}
	w.taken[d] = true
	return true
}

// errFull says that the store has no room for it.
var errFull = errors.New("the store of checkpoints is full")

// emit writes one frame, which holds these objects.
func (w *packer) emit(frame []byte, opened int, objects []place) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.f == nil && w.err == nil {
		w.f, w.err = os.CreateTemp(w.dir, newPrefix+"*") // mode 0600
		if w.err == nil {
			w.w = bufio.NewWriterSize(w.f, 1<<20)
			_, w.err = w.w.WriteString(packMagic)
			w.offset = uint64(len(packMagic))
		}
	}
	if w.offset+uint64(len(frame)) > maxPack-maxTable && w.err == nil {
		w.err = errFull
	}
	if w.err != nil {
		return
	}
	for _, l := range objects {
		l.offset, l.stored, l.opened = w.offset, uint32(len(frame)), uint32(opened)
		w.places = append(w.places, l)
	}
	w.offset += uint64(len(frame))
	_, w.err = w.w.Write(frame)
}

// failed returns the errors so far.
func (w *packer) failed() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// close makes the pack one of the store, and returns it: nil where nothing was added.
func (w *packer) close() (*pack, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.f == nil {
		return nil, w.err
	}
	p, err := w.finishLocked()
	if err != nil {
		w.f.Close()
		_ = os.Remove(w.f.Name())
		return nil, fmt.Errorf("write a pack: %w", err)
	}
	return p, nil
}

func (w *packer) finishLocked() (*pack, error) {
	if w.err != nil {
		return nil, w.err
	}
	slices.SortFunc(w.places, func(a, b place) int { return bytes.Compare(a.object[:], b.object[:]) })
	table := make([]byte, 0, len(w.places)*tableEntry)
	for i := range w.places {
		table = w.places[i].append(table)
	}
	sum := sha256.Sum256(table)
	foot := binary.LittleEndian.AppendUint64(nil, w.offset)
	foot = binary.LittleEndian.AppendUint64(foot, uint64(len(w.places)))
	foot = append(append(foot, sum[:]...), packMagic...)
	for _, b := range [][]byte{table, foot} {
		if _, err := w.w.Write(b); err != nil {
			return nil, err
		}
	}
	if err := w.w.Flush(); err != nil {
		return nil, err
	}
	name := fmt.Sprintf("%x", sum[:12])
	path := filepath.Join(w.dir, name)
	if err := os.Rename(w.f.Name(), path); err != nil {
		return nil, err
	}
	return &pack{name: name, f: w.f, table: table, size: int64(w.offset) + int64(len(table)+len(foot))}, nil
}

// A block gathers small objects of one goroutine, to be compressed together.
type block struct {
	w       *packer
	enc     *zstd.Encoder
	raw     []byte
	objects []place
	out     []byte
	buf     []byte // for what is read
}

func (w *packer) block() (*block, error) {
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderCRC(false), zstd.WithWindowSize(1<<20))
	return &block{w: w, enc: enc}, err
}

// add adds an object that claim said is new.
func (b *block) add(d Digest, data []byte) {
	if len(data) >= blockSize/2 {
		b.w.emit(b.compress(data), len(data), []place{{object: d, length: uint32(len(data))}})
		return
	}
	b.objects = append(b.objects, place{object: d, at: uint32(len(b.raw)), length: uint32(len(data))})
	b.raw = append(b.raw, data...)
	if len(b.raw) >= blockSize {
		b.flush()
	}
}

// put adds an object that may be known, and returns its digest.
func (b *block) put(data []byte) Digest {
	d := Digest(sha256.Sum256(data))
	if b.w.claim(d) {
		b.add(d, data)
	}
	return d
}

// compress returns the frame of raw, good until it is called again.
func (b *block) compress(raw []byte) []byte {
	b.out = b.enc.EncodeAll(raw, b.out[:0])
	if len(b.out) >= len(raw)-len(raw)/16 {
		return raw
	}
	return b.out
}

func (b *block) flush() {
	if len(b.objects) > 0 {
		b.w.emit(b.compress(b.raw), len(b.raw), b.objects)
		b.raw, b.objects = b.raw[:0], b.objects[:0]
	}
}

// sync has the pack on the disk. It may be nil.
func (p *pack) sync() error {
	if p == nil {
		return nil
	}
	return fsync(int(p.f.Fd()))
}

func (p *pack) close() { _ = p.f.Close() }
