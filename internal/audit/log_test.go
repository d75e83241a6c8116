package audit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/redact"
	"github.com/bawn-dev/bawn/internal/testenv"
	"github.com/google/go-cmp/cmp"
)

func TestRecordRoundTrip(t *testing.T) {
	dir := t.TempDir() + "/a/b/audit"
	l := openLog(t, dir, Options{Sync: true})
	exit := 3
	want := event("/x")
	want.ID, want.Args, want.Dir, want.Exit = "id-1", []string{"a", "b"}, "/w", &exit
	want.Details = map[string]string{"k": "v"}
	put(t, l, want, bawn.Event{Operation: "start"})
	var got []bawn.Event
	for e, err := range Query(dir, Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, e.Event)
	}
	if len(got) != 2 {
		t.Fatalf("got %d events; want 2", len(got))
	}
	if diff := cmp.Diff(want, got[0]); diff != "" {
		t.Errorf("event changed (-want +got):\n%s", diff)
	}
	if got[1].ID == "" || time.Since(got[1].Time) > time.Minute || got[1].Resolved != bawn.Deny {
		t.Errorf("zero event became %+v; want an ID, the time and a denial", got[1])
	}
	wantClean(t, dir, 2)
	for name, mode := range map[string]os.FileMode{"": os.ModeDir | 0o700, logName: 0o600, headName: 0o600} {
		if fi, err := os.Stat(filepath.Join(dir, name)); err != nil || fi.Mode() != mode {
			t.Errorf("%q: mode %v, %v; want %v", name, fi.Mode(), err, mode)
		}
	}
}

func TestNewID(t *testing.T) {
	last := ""
	for i := range 1000 {
		id := newID(testTime.Add(time.Duration(i) * 250 * time.Microsecond))
		if len(id) != 36 || id[14] != '7' || !strings.ContainsRune("89ab", rune(id[19])) {
			t.Fatalf("newID = %q; want a UUID of version 7", id)
		}
		if id <= last {
			t.Fatalf("newID = %q after %q; want a later one to sort behind", id, last)
		}
		last = id
	}
	if a, b := newID(testTime), newID(testTime); a == b {
		t.Error("two IDs of one moment are equal")
	}
}

// TestNoForgedLines is probe E185: text that looks like a record, or acts on a
// terminal, stays inside its field.
func TestNoForgedLines(t *testing.T) {
	dir := t.TempDir() + "/audit"
	l := openLog(t, dir, Options{})
	forged, _ := appendRecord([]byte("line1\n"), 2, digest{}, []byte("{}"))
	e := event(string(forged))
	e.Agent, e.Args = "\x1b[2Jagent\r", []string{"a\u2028b", "\u202ebidi", "zero\u200b", "tag\U000e0041", "del\x7f", "c1\u009b"}
	e.Details = map[string]string{"k\n": "v\n"}
	put(t, l, e)
	wantClean(t, dir, 1)
	raw := readFile(t, filepath.Join(dir, logName))
	if n := bytes.Count(raw, []byte("\n")); n != 1 {
		t.Errorf("one event made %d lines", n)
	}
	if i := bytes.IndexFunc(raw[:len(raw)-1], redact.Invisible); i >= 0 {
		t.Errorf("line holds an invisible character: %q", raw[i:i+8])
	}
	for got, err := range Query(dir, Filter{}) {
		if err != nil || got.Event.Resource != e.Resource || cmp.Diff(e.Args, got.Event.Args) != "" {
			t.Errorf("read back %q %q, %v; want the text unchanged", got.Event.Resource, got.Event.Args, err)
		}
	}
}

// readOne returns the log's last event.
func readOne(t *testing.T, dir string) bawn.Event {
	t.Helper()
	for e, err := range Query(dir, Filter{NewestFirst: true}) {
		if err != nil {
			t.Fatal(err)
		}
		return e.Event
	}
	t.Fatal("log is empty")
	return bawn.Event{}
}

func TestNoUTF8IsShown(t *testing.T) {
	dir := t.TempDir() + "/audit"
	l := openLog(t, dir, Options{})
	e := event("/tmp/a\xffb")
	e.Details = map[string]string{detailCut: "a lie", detailEscaped: "another"}
	put(t, l, e)
	got := readOne(t, dir)
	if want := `/tmp/a\xffb`; got.Resource != want {
		t.Errorf("resource %q; want %q", got.Resource, want)
	}
	if diff := cmp.Diff(map[string]string{detailEscaped: "resource"}, got.Details); diff != "" {
		t.Errorf("details (-want +got):\n%s", diff)
	}
}

func TestSecretsAreNotWritten(t *testing.T) {
	dir := t.TempDir() + "/audit"
	l := openLog(t, dir, Options{})
	e := event("curl -H 'Authorization: Bearer s3cr3t-value'")
	e.Args = []string{"x", "--password", "s3cr3t-value", "https://u:s3cr3t-value@h"}
	e.Reason, e.Dir, e.Agent = "because TOKEN=s3cr3t-value", "/a?access_token=s3cr3t-value", "token=s3cr3t-value"
	e.Details = map[string]string{"env.API_TOKEN": "other", "k": "token=s3cr3t-value", "token=s3cr3t-value": "v"}
	put(t, l, e)
	raw := readFile(t, filepath.Join(dir, logName))
	if bytes.Contains(raw, []byte("s3cr3t")) || bytes.Contains(raw, []byte("other")) {
		t.Errorf("a secret was written: %s", raw)
	}
}

func TestLargeEventsAreCutAndSaySo(t *testing.T) {
	many := make([]string, testenv.Some(20_000, 4_000))
	details := map[string]string{}
	for i := range many {
		many[i] = fmt.Sprintf("argument %d \x01", i)
	}
	for i := range testenv.Some(20_000, 1_000) {
		details[fmt.Sprintf("key%05d\u202e", i)] = strings.Repeat("\x02", 100)
	}
	for name, change := range map[string]func(*bawn.Event){
		"resource": func(e *bawn.Event) { e.Resource = "begin" + strings.Repeat("é", 1<<20) + "end" },
		"args":     func(e *bawn.Event) { e.Args = many },
		"details":  func(e *bawn.Event) { e.Details = details },
		"key":      func(e *bawn.Event) { e.Details = map[string]string{strings.Repeat("k", 1<<17): "v"} },
		"all": func(e *bawn.Event) {
			e.Args, e.Details = many, details
			for _, p := range []*string{&e.ID, &e.Session, &e.Parent, &e.Agent, &e.Kind, &e.Operation, &e.Resource,
				&e.Dir, &e.Source, &e.Rule, &e.Reason, &e.Ticket, &e.Provider} {
				*p = strings.Repeat("\x01\xff", testenv.Some(100_000, 10_000))
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir() + "/audit"
			e := event("/x")
			change(&e)
			put(t, openLog(t, dir, Options{}), e)
			wantClean(t, dir, 1)
			got := readOne(t, dir)
			if got.Details[detailCut] == "" {
				t.Errorf("details %.200q; want %q to name what was cut", got.Details, detailCut)
			}
			if raw, _ := json.Marshal(got); len(raw) > 2*maxEvent || !bytes.Contains(raw, []byte("[bawn: ")) && name != "details" {
				t.Errorf("event of %d bytes; want it short and marked", len(raw))
			}
			if name == "all" && got.Details[detailEscaped] == "" {
				t.Errorf("details lost %q", detailEscaped)
			}
		})
	}
}

func TestCutKeepsBothEnds(t *testing.T) {
	got := cutString("begin"+strings.Repeat("é", 1000)+"end", 64)
	if !strings.HasPrefix(got, "begin") || !strings.HasSuffix(got, "end") || !strings.Contains(got, " bytes cut, sha256 of all ") {
		t.Errorf("cutString = %q; want beginning, mark and end", got)
	}
	if s := strings.ToValidUTF8(got, "?"); s != got {
		t.Errorf("cutString = %q; want valid UTF-8", got)
	}
}

func TestUnwritableTime(t *testing.T) {
	l := openLog(t, t.TempDir()+"/audit", Options{})
	e := event("/x")
	e.Time = time.Date(20000, 1, 1, 0, 0, 0, 0, time.UTC) // RFC 3339 has four digits
	if err := l.Record(context.Background(), e); err == nil {
		t.Error("an event that can't be written gave no error")
	}
}

func TestOpenRefuses(t *testing.T) {
	for name, spoil := range map[string]func(dir string) error{
		"directory for others": func(dir string) error { return os.Chmod(dir, 0o750) },
		"log readable":         func(dir string) error { return os.Chmod(filepath.Join(dir, logName), 0o640) },
		"log writable":         func(dir string) error { return os.Chmod(filepath.Join(dir, logName), 0o602) },
		"head writable":        func(dir string) error { return os.Chmod(filepath.Join(dir, headName), 0o620) },
		"log linked":           func(dir string) error { return os.Link(filepath.Join(dir, logName), filepath.Join(dir, "x")) },
		"log a symbolic link":  func(dir string) error { return swap(dir, logName, os.Symlink) },
		"head a symbolic link": func(dir string) error { return swap(dir, headName, os.Symlink) },
		"log a FIFO": func(dir string) error {
			return swap(dir, logName, func(_, p string) error { return syscall.Mkfifo(p, 0o600) })
		},
		"log a directory": func(dir string) error {
			return swap(dir, logName, func(_, p string) error { return os.Mkdir(p, 0o600) })
		},
		"dir a symbolic link": func(dir string) error { return swap(filepath.Dir(dir), filepath.Base(dir), os.Symlink) },
		"dir a file": func(dir string) error {
			return swap(filepath.Dir(dir), filepath.Base(dir), func(_, p string) error { return os.WriteFile(p, nil, 0o600) })
		},
		"dir's name impossible": func(dir string) error { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			dir := newLog(t, 1)
			if _, err := Open(dir, Options{}); err != nil {
				t.Fatalf("control: %v", err)
			}
			if err := spoil(dir); err != nil {
				t.Fatal(err)
			}
			if name == "dir's name impossible" {
				dir += "\x00"
			}
			if l, err := Open(dir, Options{}); err == nil {
				l.Close()
				t.Error("Open = nil; want a refusal")
			}
		})
	}
}

// swap puts what make makes in the place of dir/name; the original is kept as
// dir/moved, which a link may point to.
func swap(dir, name string, make func(old, path string) error) error {
	path, moved := filepath.Join(dir, name), filepath.Join(dir, "moved")
	if err := os.Rename(path, moved); err != nil {
		return err
	}
	return make(moved, path)
}

func TestOpenRefusesOtherOwner(t *testing.T) {
	root := "/" // belongs to root; as root, no other owner is at hand without making one
	dir := t.TempDir()
	if os.Geteuid() == 0 {
		root = filepath.Join(dir, "theirs")
		if err := errors.Join(os.Mkdir(root, 0o700), os.Chown(root, 65534, 65534)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Open(root, Options{}); err == nil || !strings.Contains(err.Error(), "belongs to user") {
		t.Errorf("Open = %v; want a refusal of another's directory", err)
	}
}

func TestClosed(t *testing.T) {
	l := openLog(t, t.TempDir()+"/audit", Options{})
	if err := errors.Join(l.Close(), l.Close()); err != nil {
		t.Errorf("Close twice = %v; want nil", err)
	}
	if err := l.Record(context.Background(), event("/x")); !errors.Is(err, ErrClosed) {
		t.Errorf("Record = %v; want %v", err, ErrClosed)
	}
}

func TestManyWritersOneProcess(t *testing.T) {
	dir := t.TempDir() + "/audit"
	shared := openLog(t, dir, Options{})
	var wg sync.WaitGroup
	for range 4 {
		own := openLog(t, dir, Options{})
		for _, l := range []*Log{shared, own} {
			wg.Go(func() {
				for i := range 25 {
					if err := l.Record(context.Background(), event(fmt.Sprint(i))); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	wg.Wait()
	wantClean(t, dir, 200)
}

func TestManyProcesses(t *testing.T) {
	dir := t.TempDir() + "/audit"
	const processes, each = 8, 200
	var wait []func() error
	for range processes {
		wait = append(wait, startChild(t, "append", dir, each).Wait)
	}
	for _, w := range wait {
		if err := w(); err != nil {
			t.Error(err)
		}
	}
	wantClean(t, dir, processes*each)
}

func TestLockIsBounded(t *testing.T) {
	dir := newLog(t, 1)
	holder := openLog(t, dir, Options{})
	if err := lock(context.Background(), holder.files.log, exclusive); err != nil {
		t.Fatal(err)
	}
	l := openLog(t, dir, Options{})
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	if err := l.Record(ctx, event("/x")); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Record = %v; want the context's end", err)
	}
	unlock(holder.files.log)
	put(t, l, event("/x")) // control
	done, cancel := context.WithCancel(context.Background())
	cancel()
	if err := l.Record(done, event("/end")); err != nil {
		t.Errorf("Record after the context's end = %v; want a free lock taken", err)
	}
	wantClean(t, dir, 3)
}

func TestMovedAway(t *testing.T) {
	dir := newLog(t, 3)
	l := openLog(t, dir, Options{})
	put(t, l, event("/old"))
	if err := os.Rename(dir, dir+".old"); err != nil {
		t.Fatal(err)
	}
	put(t, l, event("/new"))
	wantClean(t, dir+".old", 4)
	wantClean(t, dir, 1)

	if err := os.Remove(filepath.Join(dir, logName)); err != nil {
		t.Fatal(err)
	}
	var f *Fault
	if err := l.Record(context.Background(), event("/x")); !errors.As(err, &f) || f.Kind != Truncated {
		t.Errorf("Record after the log was removed = %v; want %v", err, Truncated)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	writeFile(t, dir, nil)
	if err := l.Record(context.Background(), event("/x")); err == nil {
		t.Error("Record without a directory = nil; want an error")
	}
}

// BenchmarkOpenRecord is what one bawn command pays: at most 300 µs.
func BenchmarkOpenRecord(b *testing.B) {
	dir := newLog(b, 100)
	for b.Loop() {
		l, err := Open(dir, Options{})
		if err != nil {
			b.Fatal(err)
		}
		put(b, l, event("/file"))
		l.Close()
	}
}

func BenchmarkRecord(b *testing.B) {
	l := openLog(b, b.TempDir()+"/audit", Options{})
	for b.Loop() {
		put(b, l, event("/file"))
	}
}
