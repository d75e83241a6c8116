package checkpoint

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// FuzzTree reads damaged trees.
func FuzzTree(f *testing.F) {
	f.Add(encodeTree([]Entry{{Name: "a", Kind: File, Object: Digest{1}, Size: 5, Link: 7}, {Name: "b", Kind: Directory, Mode: 0o755, Attrs: Digest{2}}}))
	f.Add([]byte{wholeTree, 1, 'a'})
	f.Fuzz(func(t *testing.T, b []byte) {
		list, err := decodeTree(b)
		if err != nil {
			return
		}
		if len(list) > len(b) {
			t.Fatalf("%d entries of %d bytes", len(list), len(b))
		}
		again, err := decodeTree(encodeTree(list))
		if err != nil || !slices.Equal(again, list) {
			t.Fatalf("%v: %+v is not %+v", err, again, list)
		}
	})
}

func FuzzIndex(f *testing.F) {
	n := &node{ino: 1, ctime: -5, items: []item{{Entry: Entry{Name: "a", Kind: Directory}, sub: &node{}}, {Entry: Entry{Name: "f", Kind: File, Size: 4, Object: Digest{3}}}}}
	whole := encodeIndex("/w", []packID{{"p", 3}}, n)
	f.Add(whole[:len(whole)-4])
	f.Fuzz(func(t *testing.T, b []byte) {
		b = binary.LittleEndian.AppendUint32(slices.Clone(b), crc(b))
		n, packs, err := decodeIndex(b, "/w")
		if err == nil && len(packs)+names(n) > len(b) {
			t.Fatalf("%d packs, %d names of %d bytes", len(packs), names(n), len(b))
		}
	})
}

func names(n *node) (all int) {
	for _, x := range n.list() {
		if all++; x.sub != nil {
			all += names(x.sub)
		}
	}
	return all
}

func FuzzAttrs(f *testing.F) {
	f.Add([]byte("\x09user.note\x04mine"))
	f.Fuzz(func(t *testing.T, b []byte) {
		list, err := decodeAttrs(b)
		if err == nil && len(list) > len(b) {
			t.Fatal(len(list))
		}
	})
}

func FuzzRecord(f *testing.F) {
	f.Add([]byte(`{"id":"x","when":"2026-01-01T00:00:00Z","why":"start","roots":[{"path":"/w","mode":493,"tree":"` + strings.Repeat("0", 64) + `","files":1,"bytes":1}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := decodeRecord(b, "x")
		if err == nil && (len(c.Roots) == 0 || !filepath.IsAbs(c.Roots[0].Path)) {
			t.Fatalf("%+v", c)
		}
	})
}

// FuzzPack damages a pack anywhere. What is read from it is right, or an error.
func FuzzPack(f *testing.F) {
	dir := f.TempDir()
	s, err := Open(dir, 0)
	if err != nil {
		f.Fatal(err)
	}
	p := s.packer(s.has)
	b, err := p.block()
	if err != nil {
		f.Fatal(err)
	}
	objects := []Digest{b.put([]byte(strings.Repeat("text ", 1000))), b.put([]byte("short")), b.put([]byte(noise(1, 3000)))}
	b.flush()
	made, err := p.close()
	if err != nil {
		f.Fatal(err)
	}
	whole, err := os.ReadFile(filepath.Join(dir, packsName, made.name))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(uint(3), byte(1), uint(0), true)
	f.Add(uint(len(whole)-3), byte(1), uint(2), false)
	f.Add(uint(len(whole)-70), byte(9), uint(0), true)
	f.Fuzz(func(t *testing.T, at uint, with byte, cut uint, sign bool) {
		damaged := slices.Clone(whole[:len(whole)-int(cut%uint(len(whole)))])
		damaged[at%uint(len(damaged))] ^= with
		if sign {
			resign(damaged)
		}
		path := filepath.Join(t.TempDir(), "pack")
		if err := os.WriteFile(path, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		p, err := openPack(path)
		if err != nil {
			if !errors.Is(err, errPack) {
				t.Fatal(err)
			}
			return
		}
		defer p.close()
		s := &Store{packs: []*pack{p}, open: true}
		for _, d := range objects {
			if b, err := s.get(d); err == nil && len(b) > 5000 || err != nil && !errors.Is(err, errMissing) {
				t.Fatalf("%d bytes, %v", len(b), err)
			}
		}
	})
}

// resign makes a damaged table look whole, where it still has one.
func resign(b []byte) {
	if len(b) < packFooter {
		return
	}
	foot := b[len(b)-packFooter:]
	from := binary.LittleEndian.Uint64(foot)
	if from < uint64(len(b)-packFooter) {
		sum := sha256.Sum256(b[from : len(b)-packFooter])
		copy(foot[16:], sum[:])
	}
}

func crc(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }
