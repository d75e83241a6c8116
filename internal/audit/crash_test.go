package audit

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/testenv"
)

// operations returns the operations of the log's events, joined by blanks.
func operations(t *testing.T, dir string) string {
	t.Helper()
	var ops []string
	for e, err := range Query(dir, Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		ops = append(ops, e.Event.Operation)
	}
	return strings.Join(ops, " ")
}

func TestTornRecordIsSealed(t *testing.T) {
	for _, open := range []string{"before", "after"} { // the crash of another process, or of one before us
		dir := newLog(t, 2)
		path := filepath.Join(dir, logName)
		l := openLog(t, dir, Options{})
		if open == "before" {
			put(t, l, event("/x"))
		}
		whole := readFile(t, path)
		torn := whole[:len(whole)/2-7]
		torn = torn[bytes.LastIndexByte(torn, '\n')+1:]
		writeFile(t, path, append(whole, torn...))
		if f := verify(t, dir).Fault; f == nil || f.Kind != Torn {
			t.Fatalf("Verify = %v; want %v", f, Torn)
		}
		put(t, l, event("/y"))
		if got := readOne(t, dir); got.Resource != "/y" {
			t.Errorf("last event is %+v; want the one recorded", got)
		}
		if got, want := operations(t, dir), " seal read"; !strings.HasSuffix(got, want) {
			t.Errorf("operations %q; want them to end in %q", got, want)
		}
		kept, err := filepath.Glob(path + ".torn-*")
		if err != nil || len(kept) != 1 || !bytes.Equal(readFile(t, kept[0]), torn) {
			t.Errorf("kept %q, %v; want one file with the torn bytes", kept, err)
		}
		if r := verify(t, dir); r.Fault != nil || r.Lag != 0 {
			t.Errorf("Verify = %+v; want order", r)
		}
	}
}

func TestTornFilesAreNotOverwritten(t *testing.T) {
	dir := newLog(t, 1)
	path := filepath.Join(dir, logName)
	writeFile(t, path+".torn-2", []byte("older"))
	writeFile(t, path, append(readFile(t, path), "half"...))
	put(t, openLog(t, dir, Options{}), event("/x"))
	if got := string(readFile(t, path+".torn-2")); got != "older" {
		t.Errorf("older torn file now holds %q", got)
	}
	if got := string(readFile(t, path+".torn-2.1")); got != "half" {
		t.Errorf("newer torn file holds %q", got)
	}
}

func TestLaggingHeadIsRepaired(t *testing.T) {
	for _, back := range []int{1, 3, 5} {
		dir := newLog(t, 5)
		var c chain
		for ln := range forward(bytes.NewReader(readFile(t, filepath.Join(dir, logName))), 0, 1<<20) {
			if ln.number <= 5-back {
				c.next(ln)
			}
		}
		writeFile(t, filepath.Join(dir, headName), c.at.head())
		if r := verify(t, dir); r.Fault != nil || r.Lag != uint64(back) {
			t.Errorf("Verify = %+v; want a lag of %d", r, back)
		}
		put(t, openLog(t, dir, Options{}), event("/x"))
		if got, want := operations(t, dir), " repair read"; !strings.HasSuffix(got, want) {
			t.Errorf("operations %q; want them to end in %q", got, want)
		}
		wantClean(t, dir, 7)
	}
}

// TestDamagedLogTakesNoRecord: what a crash does not leave stops every action,
// and nothing on the disk is changed.
func TestDamagedLogTakesNoRecord(t *testing.T) {
	type files struct{ log, head []byte }
	for name, c := range map[string]struct {
		spoil func(f *files)
		want  FaultKind
	}{
		"last record gone":     {func(f *files) { f.log = f.log[:bytes.LastIndexByte(f.log[:len(f.log)-1], '\n')+1] }, Truncated},
		"last record cut":      {func(f *files) { f.log = f.log[:len(f.log)-10] }, Truncated},
		"all gone":             {func(f *files) { f.log = nil }, Truncated},
		"head gone":            {func(f *files) { f.head = nil }, HeadMismatch},
		"head is something":    {func(f *files) { f.head = []byte("x") }, HeadMismatch},
		"head too long":        {func(f *files) { f.head = append(f.head, ' ') }, HeadMismatch},
		"head of another log":  {func(f *files) { f.head = position{3, digest{1}, int64(len(f.log))}.head() }, HeadMismatch},
		"head of an empty log": {func(f *files) { f.log, f.head = nil, position{3, digest{1}, 0}.head() }, HeadMismatch},
		"last record changed":  {func(f *files) { f.log[len(f.log)-100] ^= 1 }, Tampered},
		"head inside a record": {func(f *files) { f.head = position{1, digest{}, 100}.head() }, Tampered},
		"garbage without end":  {func(f *files) { f.log = append(f.log, bytes.Repeat([]byte("x"), maxLine+1)...) }, Tampered},
		"garbage behind head":  {func(f *files) { f.log = append(f.log, "x\n"...) }, Tampered},
		"long garbage at head": {func(f *files) {
			f.log = append(bytes.Repeat([]byte("x"), 3*maxLine), '\n')
			f.head = position{3, digest{}, int64(len(f.log))}.head()
		}, Tampered},
	} {
		t.Run(name, func(t *testing.T) {
			dir := newLog(t, 3)
			l := openLog(t, dir, Options{})
			logPath, headPath := filepath.Join(dir, logName), filepath.Join(dir, headName)
			f := files{readFile(t, logPath), readFile(t, headPath)}
			c.spoil(&f)
			writeFile(t, logPath, f.log)
			writeFile(t, headPath, f.head)
			for range 2 {
				err := l.Record(context.Background(), event("/x"))
				var fault *Fault
				if !errors.As(err, &fault) || fault.Kind != c.want {
					t.Errorf("Record = %v; want %v", err, c.want)
				}
			}
			if !bytes.Equal(readFile(t, logPath), f.log) || !bytes.Equal(readFile(t, headPath), f.head) {
				t.Error("a damaged log was changed")
			}
			if verify(t, dir).Fault == nil {
				t.Error("Verify finds nothing")
			}
		})
	}
}

// TestKilledWriters kills a process while it appends large records, again and
// again; whatever is left, the next append and Verify go on.
func TestKilledWriters(t *testing.T) {
	dir := t.TempDir() + "/audit"
	torn, lag := 0, 0
	kills := testenv.Some(50, 8)
	for range kills {
		cmd := startChild(t, "flood", dir, 0)
		size, start := logSize(dir), time.Now()
		for logSize(dir) == size && time.Since(start) < 10*time.Second {
			time.Sleep(200 * time.Microsecond)
		}
		time.Sleep(time.Duration(rand.IntN(2000)) * time.Microsecond)
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // was killed
		r := verify(t, dir)
		switch {
		case r.Fault != nil && r.Fault.Kind == Torn:
			torn++
		case r.Fault != nil:
			t.Fatalf("Verify after kill -9: %v", r.Fault)
		case r.Lag > 0:
			lag++
		}
		l := openLog(t, dir, Options{})
		put(t, l, event("/alive"))
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if r := verify(t, dir); r.Fault != nil || r.Lag != 0 {
			t.Fatalf("Verify after the next append: %+v, %v", r, r.Fault)
		}
	}
	ops := operations(t, dir)
	if got := strings.Count(ops, "seal"); got != torn {
		t.Errorf("%d torn records, %d sealed", torn, got)
	}
	t.Logf("%d kills left %d torn records and %d lagging heads", kills, torn, lag)
}

func logSize(dir string) int64 {
	fi, err := os.Stat(filepath.Join(dir, logName))
	if err != nil {
		return 0
	}
	return fi.Size()
}

// TestFailingWrites breaks one file at a time below an open Log: the record is
// refused, what is on the disk stays in order, and appends work again after.
func TestFailingWrites(t *testing.T) {
	for name, spoil := range map[string]func(l *Log) error{
		"log not writable":  func(l *Log) error { return reopen(&l.files.log, os.O_RDONLY) },
		"head not writable": func(l *Log) error { return reopen(&l.files.head, os.O_RDONLY) },
		"log not readable":  func(l *Log) error { l.known = false; return reopen(&l.files.log, os.O_WRONLY|os.O_APPEND) },
		"head not readable": func(l *Log) error { l.known = false; return reopen(&l.files.head, os.O_WRONLY) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := newLog(t, 2)
			l := openLog(t, dir, Options{})
			put(t, l, event("/x"))
			if err := spoil(l); err != nil {
				t.Fatal(err)
			}
			if err := l.Record(context.Background(), event("/refused")); err == nil {
				t.Error("Record = nil; want an error")
			}
			if got := operations(t, dir); got != "read read read" {
				t.Errorf("operations %q; want no refused event", got)
			}
			put(t, openLog(t, dir, Options{}), event("/y"))
			if r := verify(t, dir); r.Fault != nil || r.Lag != 0 {
				t.Errorf("Verify = %+v, %v; want order", r, r.Fault)
			}
		})
	}
}

func reopen(f **os.File, flags int) error {
	old := *f
	g, err := os.OpenFile(old.Name(), flags, 0)
	*f = g
	return errors.Join(err, old.Close())
}

func TestUnkeepableTornRecord(t *testing.T) {
	if _, err := keepTorn(filepath.Join(t.TempDir(), "absent"), 1, nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("keepTorn = %v; want %v", err, fs.ErrNotExist)
	}
	dir := newLog(t, 1)
	path := filepath.Join(dir, logName)
	half := append(readFile(t, path), "half"...)
	writeFile(t, path, half)
	l := openLog(t, dir, Options{})
	if err := os.Mkdir(path+".torn-2", 0o700); err != nil {
		t.Fatal(err)
	}
	put(t, l, bawn.Event{})
	if got := string(readFile(t, path+".torn-2.1")); got != "half" {
		t.Errorf("torn file holds %q; want the bytes beside the directory in its place", got)
	}
}
