package ticket

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/bawn-dev/bawn"
)

func sample() Meaning {
	return Meaning{
		Argv: []string{"git", "push", "origin"}, Dir: "/home/u/w", Env: []string{"PATH=/usr/bin:/bin", "HOME=/home/u"},
		Stdin: Stdin{Digest: sha256.Sum256([]byte("in"))}, Limits: bawn.Resources{MemoryMB: 512, Timeout: time.Minute, CPUs: 1.5},
		Session: "s1", Plan: sha256.Sum256([]byte("plan")),
	}
}

func mustDigest(t testing.TB, m Meaning) [32]byte {
	t.Helper()
	d, err := Digest(m)
	if err != nil || d == [32]byte{} {
		t.Fatalf("Digest(%+v): %v", m, err)
	}
	return d
}

// TestDigestStaysTheSame: a relay and an executor of different builds must agree. A
// change of the encoding needs a new version.
func TestDigestStaysTheSame(t *testing.T) {
	const want = "7cca654bbdb629c287982de2ad904c92d920ddeef8a02cb89879c565a5e18e0a"
	d := mustDigest(t, sample())
	if got := hex.EncodeToString(d[:]); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestAnyChangeIsAnotherDigest changes one thing at a time.
func TestAnyChangeIsAnotherDigest(t *testing.T) {
	changes := map[string]func(m *Meaning){
		"a word":                   func(m *Meaning) { m.Argv[2] = "upstream" },
		"a word more":              func(m *Meaning) { m.Argv = append(m.Argv, "--force") },
		"an empty word more":       func(m *Meaning) { m.Argv = append(m.Argv, "") },
		"words joined":             func(m *Meaning) { m.Argv = []string{"git", "push origin"} },
		"the directory":            func(m *Meaning) { m.Dir = "/home/u" },
		"a value":                  func(m *Meaning) { m.Env[0] = "PATH=/tmp:/usr/bin:/bin" },
		"a variable more":          func(m *Meaning) { m.Env = append(m.Env, "LD_PRELOAD=/tmp/x.so") },
		"a variable less":          func(m *Meaning) { m.Env = m.Env[:1] },
		"stdin":                    func(m *Meaning) { m.Stdin.Digest[0]++ },
		"no stdin":                 func(m *Meaning) { m.Stdin = Stdin{} },
		"live stdin":               func(m *Meaning) { m.Stdin = Stdin{Live: true} },
		"background":               func(m *Meaning) { m.Background = true },
		"memory":                   func(m *Meaning) { m.Limits.MemoryMB = 0 },
		"memory as another limit":  func(m *Meaning) { m.Limits.MemoryMB, m.Limits.TmpMB = 0, 512 },
		"cpus":                     func(m *Meaning) { m.Limits.CPUs = 1.25 },
		"cpu shares":               func(m *Meaning) { m.Limits.CPUShares = 2 },
		"processes":                func(m *Meaning) { m.Limits.PIDs = 2 },
		"files":                    func(m *Meaning) { m.Limits.OpenFiles = 2 },
		"file size":                func(m *Meaning) { m.Limits.FileSizeMB = 2 },
		"time":                     func(m *Meaning) { m.Limits.Timeout++ },
		"session":                  func(m *Meaning) { m.Session = "s2" },
		"plan":                     func(m *Meaning) { m.Plan[31]++ },
		"the border of two fields": func(m *Meaning) { m.Session, m.Dir = "1", m.Dir+"s" },
	}
	seen := map[[32]byte]string{mustDigest(t, sample()): "nothing"}
	for name, change := range changes {
		m := sample()
		change(&m)
		d := mustDigest(t, m)
		if other, ok := seen[d]; ok {
			t.Errorf("%s and %s have one digest", name, other)
		}
		seen[d] = name
	}
}

// TestSameMeaningSameDigest: what means the same.
func TestSameMeaningSameDigest(t *testing.T) {
	a, b := sample(), sample()
	slices.Reverse(b.Env)
	a.Limits.CPUs, b.Limits.CPUs = 0, math.Copysign(0, -1)
	if mustDigest(t, a) != mustDigest(t, b) {
		t.Error("the order of variables, or the sign of zero, changes the digest")
	}
}

func TestWhatHasNoDigest(t *testing.T) {
	for name, change := range map[string]func(m *Meaning){
		"the zero meaning":        func(m *Meaning) { *m = Meaning{} },
		"no command":              func(m *Meaning) { m.Argv = nil },
		"an empty command":        func(m *Meaning) { m.Argv = []string{"", "x"} },
		"no directory":            func(m *Meaning) { m.Dir = "" },
		"a relative directory":    func(m *Meaning) { m.Dir = "w" },
		"a directory with dots":   func(m *Meaning) { m.Dir = "/home/u/../v" },
		"no session":              func(m *Meaning) { m.Session = "" },
		"no plan":                 func(m *Meaning) { m.Plan = [32]byte{} },
		"NUL in argv":             func(m *Meaning) { m.Argv[1] = "a\x00b" },
		"NUL in a value":          func(m *Meaning) { m.Env[0] = "A=\x00" },
		"NUL in the directory":    func(m *Meaning) { m.Dir = "/\x00" },
		"a variable twice":        func(m *Meaning) { m.Env = append(m.Env, "PATH=/tmp") },
		"a variable without =":    func(m *Meaning) { m.Env = append(m.Env, "X") },
		"a variable without name": func(m *Meaning) { m.Env = append(m.Env, "=x") },
		"live and known":          func(m *Meaning) { m.Stdin.Live = true },
		"a negative limit":        func(m *Meaning) { m.Limits.PIDs = -1 },
		"negative cpus":           func(m *Meaning) { m.Limits.CPUs = -1 },
		"cpus that are no number": func(m *Meaning) { m.Limits.CPUs = math.NaN() },
		"endless cpus":            func(m *Meaning) { m.Limits.CPUs = math.Inf(1) },
	} {
		m := sample()
		change(&m)
		if d, err := Digest(m); err == nil || d != [32]byte{} {
			t.Errorf("%s: %x, %v; want an error and the zero digest", name, d, err)
		}
	}
}

// decodeMeaning is the way back, written apart from encode: that there is one
// shows that no two meanings share an encoding. Values come back as digests.
func decodeMeaning(t *rapid.T, b []byte) Meaning {
	take := func(n int) []byte {
		if n > len(b) {
			t.Fatalf("the encoding is short of %d bytes", n-len(b))
		}
		out := b[:n]
		b = b[n:]
		return out
	}
	number := func() int64 { return int64(binary.BigEndian.Uint64(take(8))) }
	text := func() string { return string(take(int(number()))) }
	if v := text(); v != "bawn meaning 1" {
		t.Fatalf("version %q", v)
	}
	var m Meaning
	for n := number(); n > 0; n-- {
		m.Argv = append(m.Argv, text())
	}
	m.Dir = text()
	for n := number(); n > 0; n-- {
		m.Env = append(m.Env, text()+"="+hex.EncodeToString(take(32)))
	}
	m.Stdin.Live = take(1)[0] == 1
	m.Stdin.Digest = [32]byte(take(32))
	m.Background = take(1)[0] == 1
	l := &m.Limits
	for _, n := range []*int64{&l.CPUShares, &l.MemoryMB, &l.TmpMB, &l.PIDs, &l.OpenFiles, &l.FileSizeMB, (*int64)(&l.Timeout)} {
		*n = number()
	}
	l.CPUs = math.Float64frombits(uint64(number()))
	m.Session = text()
	m.Plan = [32]byte(take(32))
	if len(b) > 0 {
		t.Fatalf("%d bytes are left", len(b))
	}
	return m
}

func TestEncodingIsInjective(t *testing.T) {
	text := rapid.StringMatching(`[a-c=/ \n]{0,4}`)
	digest := rapid.Custom(func(t *rapid.T) [32]byte { return sha256.Sum256([]byte(text.Draw(t, "of"))) })
	rapid.Check(t, func(t *rapid.T) {
		m := Meaning{
			Argv: append([]string{"x"}, rapid.SliceOf(text).Draw(t, "argv")...), Dir: "/" + rapid.StringMatching(`[a-c]{1,3}`).Draw(t, "dir"),
			Background: rapid.Bool().Draw(t, "background"), Session: "s" + text.Draw(t, "session"), Plan: digest.Draw(t, "plan"),
			Limits: bawn.Resources{MemoryMB: rapid.Int64Min(0).Draw(t, "memory"), Timeout: time.Duration(rapid.Int64Min(0).Draw(t, "time")), CPUs: rapid.Float64Range(0, 1e9).Draw(t, "cpus")},
		}
		if m.Stdin.Live = rapid.Bool().Draw(t, "live"); !m.Stdin.Live {
			m.Stdin.Digest = digest.Draw(t, "stdin")
		}
		for _, n := range rapid.SliceOfDistinct(rapid.StringMatching(`[A-C]{1,2}`), rapid.ID).Draw(t, "names") {
			m.Env = append(m.Env, n+"="+text.Draw(t, "value"))
		}
		if _, err := Digest(m); err != nil {
			t.Fatal(err)
		}
		want := m
		want.Env = nil
		for _, kv := range slices.Sorted(slices.Values(m.Env)) {
			name, value, _ := strings.Cut(kv, "=")
			sum := sha256.Sum256([]byte(value))
			want.Env = append(want.Env, name+"="+hex.EncodeToString(sum[:]))
		}
		slices.SortFunc(want.Env, func(a, b string) int {
			x, _, _ := strings.Cut(a, "=")
			y, _, _ := strings.Cut(b, "=")
			return strings.Compare(x, y)
		})
		if diff := cmp.Diff(want, decodeMeaning(t, m.encode())); diff != "" {
			t.Fatal(diff)
		}
	})
}

func BenchmarkDigest(b *testing.B) {
	m := sample()
	for b.Loop() {
		if _, err := Digest(m); err != nil {
			b.Fatal(err)
		}
	}
}
