package audit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/testenv"
)

// resources returns the resources of what is yielded, an error as "!kind".
func resources(seq iter.Seq2[Entry, error]) string {
	var out []string
	for e, err := range seq {
		var f *Fault
		switch {
		case errors.As(err, &f):
			out = append(out, "!"+string(f.Kind))
		case err != nil:
			out = append(out, "!"+err.Error())
		default:
			out = append(out, e.Event.Resource)
		}
	}
	return strings.Join(out, " ")
}

func TestQueryFilters(t *testing.T) {
	dir := t.TempDir() + "/audit"
	l := openLog(t, dir, Options{})
	for i, change := range []func(e *bawn.Event){
		func(e *bawn.Event) {},
		func(e *bawn.Event) { e.Session = "s2" },
		func(e *bawn.Event) { e.Agent = "codex" },
		func(e *bawn.Event) { e.Resolved = bawn.Deny },
		func(e *bawn.Event) { e.Kind = "network" },
		func(e *bawn.Event) { e.Time = testTime.Add(time.Hour) },
	} {
		e := event(fmt.Sprintf("/r/%d", i))
		change(&e)
		put(t, l, e)
	}
	deny := bawn.Deny
	for _, c := range []struct {
		f    Filter
		want string
	}{
		{Filter{}, "/r/0 /r/1 /r/2 /r/3 /r/4 /r/5"},
		{Filter{NewestFirst: true}, "/r/5 /r/4 /r/3 /r/2 /r/1 /r/0"},
		{Filter{Session: "s2"}, "/r/1"},
		{Filter{Agent: "codex"}, "/r/2"},
		{Filter{Verdict: &deny}, "/r/3"},
		{Filter{Kind: "network"}, "/r/4"},
		{Filter{Since: testTime.Add(time.Hour)}, "/r/5"},
		{Filter{Until: testTime}, ""},
		{Filter{Until: testTime.Add(time.Hour), Limit: 2}, "/r/0 /r/1"},
		{Filter{Limit: 2, NewestFirst: true}, "/r/5 /r/4"},
		{Filter{Resource: "r/3"}, "/r/3"},
		{Filter{Resource: "*3"}, "/r/3"},
		{Filter{Resource: "r*3"}, ""},
		{Filter{Session: "s2", Agent: "codex"}, ""},
	} {
		if got := resources(Query(dir, c.f)); got != c.want {
			t.Errorf("%+v: %q; want %q", c.f, got, c.want)
		}
	}
	for e := range Query(dir, Filter{Resource: "/r/4"}) {
		if e.Line != 5 || e.Seq != 5 || mustParse(t, e.Raw).seq != 5 {
			t.Errorf("entry %+v; want line 5 with its text", e)
		}
	}
}

func TestGlob(t *testing.T) {
	for _, c := range []struct {
		pattern, text string
		want          bool
	}{
		{"*", "", true}, {"**", "", true}, {"?", "", false}, {"*", "a/b", true},
		{"/a/*", "/a/b/c", true}, {"/a/*", "/b/a/", false}, {"*.go", "x.go", true}, {"*.go", "x.goo", false},
		{"a?c", "abc", true}, {"a?c", "aéc", true}, {"a?c", "ac", false}, {"a?", "aé", true}, {"a?c", "a\xffc", true},
		{"*a*b*c", "xaxbxbxc", true}, {"*a*b*c", "xaxcxb", false}, {"a*", "b", false}, {"é*", "éx", true},
		{"git push*", "git push --force", true},
	} {
		if got := glob(c.pattern, c.text); got != c.want {
			t.Errorf("glob(%q, %q) = %v; want %v", c.pattern, c.text, got, c.want)
		}
	}
	start := time.Now()
	if glob(strings.Repeat("a*", 30)+"b", strings.Repeat("a", 60_000)) {
		t.Error("a pattern that ends in b matched a text of a only")
	}
	if d := time.Since(start); d > 30*time.Second {
		t.Errorf("glob took %v; want no exponential search", d)
	}
}

// TestQueryGoesOn: a broken line is reported and hides no other, in either
// direction.
func TestQueryGoesOn(t *testing.T) {
	dir := newLog(t, 3)
	path := filepath.Join(dir, logName)
	lines := bytes.SplitAfter(readFile(t, path), []byte("\n"))
	unknown, _ := appendRecord(nil, 9, digest{}, []byte(`{"resolved":"perhaps"}`))
	edited := bytes.Replace(lines[1], []byte("/file/1"), []byte("/file/9"), 1)
	long := append(bytes.Repeat([]byte("x"), 9*maxLine), '\n')
	log := slices.Concat(long, lines[0], []byte("garbage\n"), edited, lines[1], unknown, long, lines[2], []byte("half"))
	writeFile(t, path, log)
	want := "!torn /file/0 !tampered !tampered /file/1 !tampered !torn /file/2 !torn"
	if got := resources(Query(dir, Filter{})); got != want {
		t.Errorf("forward: %q; want %q", got, want)
	}
	back := strings.Fields(want)
	slices.Reverse(back)
	if got := resources(Query(dir, Filter{NewestFirst: true})); got != strings.Join(back, " ") {
		t.Errorf("newest first: %q; want %q", got, back)
	}
	for _, newest := range []bool{true, false} {
		for range Query(dir, Filter{NewestFirst: newest}) {
			break // at the first error: must not go on
		}
		for _, err := range Query(dir, Filter{NewestFirst: newest}) {
			if err == nil {
				break // at the first record
			}
		}
	}
}

func TestQueryManyWindows(t *testing.T) {
	dir := t.TempDir() + "/audit"
	l := openLog(t, dir, Options{})
	for i := range 60 {
		e := event(fmt.Sprint(i))
		e.Reason = strings.Repeat("x", i*1000%50_000)
		put(t, l, e)
	}
	forth := strings.Fields(resources(Query(dir, Filter{})))
	back := strings.Fields(resources(Query(dir, Filter{NewestFirst: true})))
	slices.Reverse(back)
	if len(forth) != 60 || !slices.Equal(forth, back) {
		t.Errorf("forward %q, backward %q; want the same 60", forth, back)
	}
}

// failing is a file whose reads fail from an offset on.
type failing struct {
	io.ReaderAt
	from int64
}

var errBroken = errors.New("broken disk")

func (f failing) ReadAt(p []byte, off int64) (int, error) {
	if off+int64(len(p)) > f.from {
		return 0, errBroken
	}
	return f.ReaderAt.ReadAt(p, off)
}

func TestReadErrors(t *testing.T) {
	long := append(bytes.Repeat([]byte("x"), 20*maxLine), '\n')
	for _, from := range []int64{0, 2 * maxLine, 18 * maxLine} {
		r := failing{bytes.NewReader(long), from}
		if rep, err := check(r, int64(len(long)), position{}.head()); rep.Fault == nil && !errors.Is(err, errBroken) {
			t.Errorf("check of a disk broken at %d = %v; want %v", from, err, errBroken)
		}
		if got := resources(func(yield func(Entry, error) bool) { choose(forward(r, 0, int64(len(long))), Filter{}, yield) }); !strings.HasSuffix(got, errBroken.Error()) {
			t.Errorf("forward: %q; want it to end with %q", got, errBroken)
		}
		if got := resources(func(yield func(Entry, error) bool) { choose(backward(r, int64(len(long))), Filter{}, yield) }); !strings.HasSuffix(got, errBroken.Error()) {
			t.Errorf("backward: %q; want it to end with %q", got, errBroken)
		}
		if _, err := lastNewline(r, int64(len(long)-1)); !errors.Is(err, errBroken) {
			t.Errorf("lastNewline = %v; want %v", err, errBroken)
		}
		if _, err := lastRecord(r, int64(len(long))); !errors.Is(err, errBroken) {
			t.Errorf("lastRecord = %v; want %v", err, errBroken)
		}
	}
	hole := holed{bytes.NewReader(long), maxLine, 2 * maxLine}
	if got := resources(func(yield func(Entry, error) bool) { choose(backward(hole, int64(len(long))), Filter{}, yield) }); !strings.Contains(got, errBroken.Error()) {
		t.Errorf("backward over a hole: %q; want %q", got, errBroken)
	}
}

// holed is a file of which a part can't be read.
type holed struct {
	io.ReaderAt
	lo, hi int64
}

func (h holed) ReadAt(p []byte, off int64) (int, error) {
	if off < h.hi && off+int64(len(p)) > h.lo {
		return 0, errBroken
	}
	return h.ReaderAt.ReadAt(p, off)
}

// tailer runs Tail and hands out what it yields.
type tailer struct {
	t      *testing.T
	got    chan string
	cancel context.CancelFunc
	done   chan struct{}
}

func startTail(t *testing.T, dir string, f Filter) *tailer {
	ctx, cancel := context.WithCancel(context.Background())
	tl := &tailer{t, make(chan string, 100), cancel, make(chan struct{})}
	go func() {
		defer close(tl.done)
		for e, err := range Tail(ctx, dir, f) {
			if err != nil {
				tl.got <- "!" + err.Error()
			} else {
				tl.got <- e.Event.Resource
			}
		}
	}()
	t.Cleanup(tl.stop)
	return tl
}

func (tl *tailer) stop() {
	tl.cancel()
	<-tl.done
}

func (tl *tailer) want(want ...string) {
	tl.t.Helper()
	for _, w := range want {
		if got := testenv.Receive(tl.t, w, tl.got); !strings.Contains(got, w) {
			tl.t.Fatalf("tail yields %q; want %q", got, w)
		}
	}
}

func TestTailBeforeThereIsALog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir() + "/later/audit"
		tl := startTail(t, dir, Filter{})
		time.Sleep(3 * pollEvery) // for it to have begun
		l := openLog(t, dir, Options{})
		put(t, l, event("/1"), event("/2"))
		tl.want("/1", "/2")
		put(t, l, event("/3"))
		tl.want("/3")

		if err := os.Rename(dir, dir+".old"); err != nil {
			t.Fatal(err)
		}
		put(t, openLog(t, dir, Options{}), event("/new"))
		tl.want("/new")

		if err := os.Truncate(filepath.Join(dir, logName), 3); err != nil {
			t.Fatal(err)
		}
		tl.want("truncated")
		tl.stop()
		if extra := len(tl.got); extra > 0 {
			t.Errorf("%d more entries; want none", extra)
		}
	})
}

func TestTailBeginsAtTheEnd(t *testing.T) {
	dir := newLog(t, 3)
	path := filepath.Join(dir, logName)
	writeFile(t, path, append(readFile(t, path), "half a record"...))
	end, since := startTail(t, dir, Filter{}), startTail(t, dir, Filter{Since: testTime})
	since.want("/file/0", "/file/1", "/file/2")
	time.Sleep(2*pollEvery + time.Second)           // in real time, as the file has it: for it to have begun
	put(t, openLog(t, dir, Options{}), event("/x")) // seals first
	end.want(".torn-4", "/x")
	since.want(".torn-4", "/x")
}

func TestTailLimitAndBreak(t *testing.T) {
	dir := newLog(t, 5)
	if got := resources(Tail(context.Background(), dir, Filter{Since: testTime, Limit: 2, Resource: "/file/"})); got != "/file/0 /file/1" {
		t.Errorf("tail with a limit: %q", got)
	}
	for range Tail(context.Background(), dir, Filter{Since: testTime}) {
		break
	}
	if err := errors.Join(os.Remove(filepath.Join(dir, logName)), os.Mkdir(filepath.Join(dir, logName), 0o700)); err != nil {
		t.Fatal(err)
	}
	if got := resources(Tail(context.Background(), dir, Filter{})); !strings.Contains(got, "want a regular file") {
		t.Errorf("tail of a directory: %q; want an error and the end", got)
	}
}

func TestTailOfGarbage(t *testing.T) {
	dir := newLog(t, 1)
	path := filepath.Join(dir, logName)
	writeFile(t, path, bytes.Repeat([]byte("x"), 2*maxLine))
	for _, f := range []Filter{{}, {Since: testTime}} {
		if got := resources(Tail(context.Background(), dir, f)); got != "!tampered" {
			t.Errorf("tail of garbage: %q; want the fault and the end", got)
		}
	}
}
