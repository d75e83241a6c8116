package audit

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/bawn-dev/bawn/internal/testenv"
)

// logBytes returns a log of n records and its head, as bytes.
func logBytes(t testing.TB, n int) (log, head []byte) {
	t.Helper()
	dir := newLog(t, n)
	return readFile(t, filepath.Join(dir, logName)), readFile(t, filepath.Join(dir, headName))
}

func checkBytes(t testing.TB, log, head []byte) Report {
	t.Helper()
	r, err := check(bytes.NewReader(log), int64(len(log)), head)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestVerifyNothing(t *testing.T) {
	dir := t.TempDir()
	wantClean(t, filepath.Join(dir, "absent"), 0)
	openLog(t, dir+"/audit", Options{})
	wantClean(t, dir+"/audit", 0)
}

// TestEveryFlipIsFound changes each byte of a log and of its head.
func TestEveryFlipIsFound(t *testing.T) {
	n := testenv.Some(20, 5)
	log, head := logBytes(t, n)
	if r := checkBytes(t, log, head); r.Fault != nil || r.Records != uint64(n) {
		t.Fatalf("control: %+v", r)
	}
	for _, part := range []struct {
		name string
		data []byte
	}{{"log", log}, {"head", head}} {
		for i := range part.data {
			for _, flip := range []byte{0x01, 0x80, part.data[i] ^ '\n'} { // one bit, no UTF-8, a newline
				if flip == 0 {
					continue
				}
				part.data[i] ^= flip
				if r := checkBytes(t, log, head); r.Fault == nil {
					t.Errorf("%s: byte %d changed by %#x is not found", part.name, i, flip)
				}
				part.data[i] ^= flip
			}
		}
	}
}

// TestEveryTruncationIsFound cuts the log after each byte.
func TestEveryTruncationIsFound(t *testing.T) {
	log, head := logBytes(t, testenv.Some(20, 5))
	for n := range log {
		if f := checkBytes(t, log[:n], head).Fault; f == nil || f.Kind != Truncated {
			t.Errorf("cut after %d bytes: %v; want %v", n, f, Truncated)
		}
	}
	for n := range head {
		if f := checkBytes(t, log, head[:n]).Fault; f == nil || f.Kind != HeadMismatch {
			t.Errorf("head cut after %d bytes: %v; want %v", n, f, HeadMismatch)
		}
	}
}

// TestEditsAreFoundAndNamed moves whole records, with the head as it was.
func TestEditsAreFoundAndNamed(t *testing.T) {
	log, head := logBytes(t, 20)
	lines := bytes.SplitAfter(log, []byte("\n"))[:20]
	other := bytes.SplitAfter(readFile(t, filepath.Join(newLog(t, 20), logName)), []byte("\n"))
	want := func(what string, edited [][]byte, line int, kind FaultKind) {
		t.Helper()
		f := checkBytes(t, bytes.Join(edited, nil), head).Fault
		if f == nil || f.Line != line || f.Kind != kind {
			t.Errorf("%s: %v; want line %d: %v", what, f, line, kind)
		}
	}
	for i := range 20 {
		removed := slices.Delete(slices.Clone(lines), i, i+1)
		if i == 19 {
			want("last removed", removed, 20, Truncated)
		} else {
			want(fmt.Sprint("removed ", i+1), removed, i+1, Removed)
		}
		for j := range 20 {
			want(fmt.Sprintf("record %d again at %d", i+1, j+1), slices.Insert(slices.Clone(lines), j, lines[i]), min(j+1+b2i(i == j), 21), insertedAt(i, j))
			if i < j {
				swapped := slices.Clone(lines)
				swapped[i], swapped[j] = swapped[j], swapped[i]
				want(fmt.Sprintf("swapped %d and %d", i+1, j+1), swapped, i+1, Reordered)
			}
		}
		replaced := slices.Clone(lines)
		replaced[i] = other[i]
		line := i + 1
		if i == 0 { // it fits the beginning, but the next one does not fit it
			line = 2
		}
		want(fmt.Sprint("replaced by another log's ", i+1), replaced, line, Tampered)
	}
	for j := 1; j < 20; j++ {
		want(fmt.Sprint("another log's record before ", j+1), slices.Insert(slices.Clone(lines), j, other[j]), j+1, Inserted)
		want(fmt.Sprint("garbage before ", j+1), slices.Insert(slices.Clone(lines), j, []byte("garbage\n")), j+1, Inserted)
	}
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// insertedAt is what a copy of record i at place j looks like: a later one
// pushes the right one back.
func insertedAt(i, j int) FaultKind {
	if i > j {
		return Reordered
	}
	return Inserted
}

// TestRehashedEdit: somebody changes a record and writes its hash anew, which
// the next record's prev shows, or behind the last one the head.
func TestRehashedEdit(t *testing.T) {
	log, head := logBytes(t, 20)
	lines := bytes.SplitAfter(log, []byte("\n"))[:20]
	for _, c := range []struct {
		record   int
		old, new string
		line     int
		want     FaultKind
	}{
		{5, `"allow"`, `"deny"`, 6, Tampered},
		{20, `"allow"`, `"deny"`, 21, Truncated}, // shorter than the head says
		{20, `"ask"`, `"allow"`, 20, HeadMismatch},
		{20, `/file/19`, `/file/91`, 20, HeadMismatch},
	} {
		rec := mustParse(t, lines[c.record-1])
		edited := slices.Clone(lines)
		edited[c.record-1], _ = appendRecord(nil, rec.seq, rec.prev, bytes.Replace(rec.event, []byte(c.old), []byte(c.new), 1))
		f := checkBytes(t, bytes.Join(edited, nil), head).Fault
		if f == nil || f.Kind != c.want || f.Line != c.line {
			t.Errorf("record %d, %s for %s: %v; want line %d: %v", c.record, c.new, c.old, f, c.line, c.want)
		}
	}
}

func mustParse(t *testing.T, line []byte) record {
	t.Helper()
	r, err := parseRecord(bytes.TrimSuffix(line, []byte("\n")))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestParseRecordIsStrict(t *testing.T) {
	good, _ := appendRecord(nil, 7, digest{1}, []byte(`{"a":"b"}`))
	good = good[:len(good)-1]
	if _, err := parseRecord(good); err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string]struct {
		old, new string
		want     error
	}{
		"version":         {`"v":1`, `"v":2`, errForm},
		"blank":           {`"seq":7`, `"seq": 7`, errForm},
		"leading zero":    {`"seq":7`, `"seq":07`, errForm},
		"no number":       {`"seq":7`, `"seq":`, errForm},
		"number too big":  {`"seq":7`, `"seq":99999999999999999999`, errForm},
		"name of prev":    {`"prev"`, `"Prev"`, errForm},
		"upper-case hex":  {`"prev":"01`, `"prev":"0A`, errForm},
		"no hex":          {`"prev":"01`, `"prev":"0g`, errForm},
		"name of event":   {`"event"`, `"Event"`, errForm},
		"hash's name":     {`"hash"`, `"Hash"`, errForm},
		"hash no hex":     {`"hash":"`, `"hash":"x`, errForm},
		"something after": {`"}`, `"} `, errForm},
		"content":         {`"a":"b"`, `"a":"c"`, errHash},
	} {
		i := strings.LastIndex(string(good), c.old)
		if what == "content" {
			i = strings.Index(string(good), c.old)
		}
		bad := string(good[:i]) + c.new + string(good[i+len(c.old):])
		if _, err := parseRecord([]byte(bad)); !errors.Is(err, c.want) {
			t.Errorf("%s: parseRecord(%s) = %v; want %v", what, bad, err, c.want)
		}
	}
	for _, event := range []string{"", "1", `"x"`, "{", `{}x`, `{},"x":{}`, "{\"a\":\"\x7f\"}", "{\"a\":\"\u202e\"}", "{\"a\":\"\xff\"}", "{\t}",
		`{"a":"` + strings.Repeat("x", maxEvent) + `"}`} {
		line, _ := appendRecord(nil, 1, digest{}, []byte(event))
		if _, err := parseRecord(line[:len(line)-1]); !errors.Is(err, errEvent) {
			t.Errorf("event %.20q: %v; want %v", event, err, errEvent)
		}
	}
	if _, err := parseRecord([]byte(partSeq + strings.Repeat("1", tailSize))); !errors.Is(err, errForm) {
		t.Errorf("tail only: %v; want %v", err, errForm)
	}
	short := partSeq + "1" + partPrev + "00" + strings.Repeat("0", tailSize)
	if _, err := parseRecord([]byte(short)); !errors.Is(err, errForm) {
		t.Errorf("short prev: %v; want %v", err, errForm)
	}
}

func TestVerifyLongLine(t *testing.T) {
	log, head := logBytes(t, 2)
	long := append(bytes.Repeat([]byte("x"), 3*maxLine), '\n')
	f := checkBytes(t, append(long, log...), head).Fault
	if f == nil || f.Kind != Tampered || f.Line != 1 {
		t.Errorf("long first line: %v; want %v", f, Tampered)
	}
	negative := fmt.Appendf(nil, "%s%020d %x %020d\n", headMagic, 0, digest{}, -1)
	if f := checkBytes(t, log, negative).Fault; f == nil || f.Kind != HeadMismatch {
		t.Errorf("negative head: %v; want %v", f, HeadMismatch)
	}
	empty := position{0, digest{1}, 0}.head()
	if f := checkBytes(t, nil, empty).Fault; f == nil || f.Kind != HeadMismatch {
		t.Errorf("head of nothing with a hash: %v; want %v", f, HeadMismatch)
	}
	inside := position{1, digest{}, 100}.head()
	if f := checkBytes(t, log, inside).Fault; f == nil || f.Kind != HeadMismatch {
		t.Errorf("head inside a record: %v; want %v", f, HeadMismatch)
	}
}

func TestVerifyRefusesOtherFiles(t *testing.T) {
	for _, name := range []string{logName, headName} {
		dir := newLog(t, 1)
		path := filepath.Join(dir, name)
		for what, make := range map[string]func() error{
			"FIFO":          func() error { return syscall.Mkfifo(path, 0o600) },
			"symbolic link": func() error { return os.Symlink("/dev/null", path) },
			"directory":     func() error { return os.Mkdir(path, 0o700) },
		} {
			if err := errors.Join(os.Remove(path), make()); err != nil {
				t.Fatal(err)
			}
			if _, err := Verify(dir); err == nil {
				t.Errorf("%s in the place of %s: Verify = nil; want an error", what, name)
			}
			for _, err := range Query(dir, Filter{}) {
				if err == nil {
					t.Errorf("%s in the place of %s: Query yields a record", what, name)
				}
			}
		}
	}
}

// BenchmarkVerify reads a log of 100,000 records.
func BenchmarkVerify(b *testing.B) {
	const n = 100_000
	var log []byte
	at := position{}
	ev, err := encode(event("/home/me/project/internal/audit/verify.go"), nil)
	if err != nil {
		b.Fatal(err)
	}
	for at.seq < n {
		log, at.hash = appendRecord(log, at.seq+1, at.hash, ev)
		at.seq++
	}
	at.size = int64(len(log))
	dir := b.TempDir()
	writeFile(b, filepath.Join(dir, logName), log)
	writeFile(b, filepath.Join(dir, headName), at.head())
	b.SetBytes(at.size)
	for b.Loop() {
		if r, err := Verify(dir); err != nil || r.Fault != nil || r.Records != n {
			b.Fatalf("%+v, %v", r, err)
		}
	}
}
