package dockerapi

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/dockerapi/writeback"
	"github.com/bawn-dev/bawn/internal/testenv"
)

// holding is a broker before an engine whose container has a status and these files, with a guest that
// sees everything.
func holding(t *testing.T, status string, cut bool, files ...*tar.Header) *Broker {
	t.Helper()
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	for _, h := range files {
		h.Mode, h.Format = 0o644, tar.FormatPAX
		err := w.WriteHeader(h)
		if err == nil && h.Typeflag == tar.TypeReg && h.Size < 1<<20 {
			_, err = w.Write(make([]byte, h.Size))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil && !cut {
		t.Fatal(err)
	}
	b, _ := before(t, newFakeEngine(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/archive") {
			_, _ = w.Write(archive.Bytes())
			return
		}
		fmt.Fprintf(w, `{"State":{"Status":%q}}`, status)
	}).socket)
	b.engine.client.Transport = tap{b.engine.client.Transport, func(string) {}, func(request string) *http.Response {
		if !strings.HasPrefix(request, "HEAD ") {
			return nil
		}
		return &http.Response{StatusCode: http.StatusNotFound, Body: http.NoBody} // no more than in the archive
	}}
	b.o.View = View{Open: func() (*os.File, error) { return openPath("/") }, Below: []string{"/"}}
	return b
}

// A container makes Bawn hold and write no more than the bounds: not by sizes whose sum is
// negative, nor by many names of one large file, nor by long names.
func TestMirrorsOfHugeContainers(t *testing.T) {
	load, text := innerLoad, mirrorText
	t.Cleanup(func() { innerLoad, mirrorText = load, text })
	innerLoad.bytes, mirrorText = 1000, 1000
	file := func(name string, size int64) *tar.Header {
		return &tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size}
	}
	second := func(name string) *tar.Header {
		return &tar.Header{Typeflag: tar.TypeLink, Name: name, Linkname: "w/a"}
	}
	for name, c := range map[string]struct {
		files []*tar.Header
		fits  bool
	}{
		"control":       {[]*tar.Header{file("w/a", 400), second("w/b"), second("w/c")}, true},
		"negative sum":  {[]*tar.Header{file("w/a", 400), file("w/b", math.MaxInt64)}, false},
		"many names":    {[]*tar.Header{file("w/a", 400), second("w/b"), second("w/c"), second("w/d")}, false},
		"long names":    {[]*tar.Header{file("w/"+strings.Repeat("x", 600), 1), file("w/"+strings.Repeat("y", 600), 1)}, false},
		"long link":     {[]*tar.Header{{Typeflag: tar.TypeSymlink, Name: "w/a", Linkname: strings.Repeat("x", 1000)}}, false},
		"control, size": {[]*tar.Header{file("w/a", 1000)}, true},
	} {
		t.Run(name, func(t *testing.T) {
			b := holding(t, "", true, c.files...)
			_, err := b.inner(t.Context(), &child{id: "x"}, &mirror{target: "/w"})
			var r *Refusal
			if c.fits && err != nil || !c.fits && (!errors.As(err, &r) || r.Rule != RuleLimit) {
				t.Errorf("%v", err)
			}
		})
	}
}

// The guest's own names are bounded, too.
func TestMirrorsOfLongNames(t *testing.T) {
	text := mirrorText
	t.Cleanup(func() { mirrorText = text })
	dir := t.TempDir()
	if err := os.Symlink(strings.Repeat("x", 1000), dir+"/link"); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		most int
		fits bool
	}{{1000, false}, {2000, true}} {
		mirrorText = c.most
		f, err := os.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		_, err = (&mirror{}).look(f, func(load) error { return nil })
		if (err == nil) != c.fits {
			t.Errorf("%d bytes: %v", c.most, err)
		}
	}
}

// What a guest forges in the writer's place neither fills the memory, nor reaches a
// terminal as it is, and a name that is no UTF-8 is reported under its own name.
func TestForgedWriter(t *testing.T) {
	const latin = "caf\xe9"
	var forged bytes.Buffer
	to := json.NewEncoder(&forged)
	for n := range 10_000 {
		if err := to.Encode(writeback.Answer{Path: fmt.Append(nil, "x", n), Error: "forged"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(to.Encode(writeback.Answer{Path: []byte(latin), Error: "\x1b]0;title\x07"}), to.Encode(writeback.Answer{Done: true})); err != nil {
		t.Fatal(err)
	}
	failed, err := readAnswers(&forged, []string{latin, "other"})
	if err != nil || len(failed) != 1 || failed[latin] == "" || strings.Contains(failed[latin], "\x1b") {
		t.Errorf("%d: %.200q, %v", len(failed), failed, err)
	}
	endless := io.MultiReader(strings.NewReader(`{"error":"`), io.LimitReader(zeros{}, 2*maxWriterAnswers))
	if _, err := readAnswers(endless, nil); err == nil {
		t.Error("an endless answer is one")
	}
}

// A guest that stops the writer does not hold up its session's end, also not from a
// container's start, which outlives its request.
func TestStoppedWriter(t *testing.T) {
	b := holding(t, "", false, &tar.Header{Typeflag: tar.TypeDir, Name: "w"}, &tar.Header{Typeflag: tar.TypeReg, Name: "w/new", Size: 3})
	started := make(chan struct{})
	b.o.Write = func(_ string, in, out *os.File) (func(), error) {
		var held []*os.File // as a process that is stopped has them
		for _, f := range []*os.File{in, out} {
			same, err := dup(f)
			if err != nil {
				return nil, err
			}
			held = append(held, same)
		}
		close(started)
		return func() { held[0].Close(); held[1].Close() }, nil
	}
	c := &child{id: "x", wanted: &wanted{}, mirrors: []*mirror{{source: t.TempDir(), target: "/w", base: tree{}, held: tree{}}}}
	over := make(chan error, 1)
	go func() {
		_, err := b.bringAll(context.Background(), c)
		over <- err
	}()
	<-started
	select {
	case err := <-over:
		t.Fatalf("control: it does not wait for the writer: %v", err)
	default:
	}
	b.end()
	testenv.Until(t, "the end of the session", func() bool { return len(over) == 1 })
	if err := <-over; err == nil {
		t.Error("it says that all was written")
	}
}

// What is missing in a container that is being removed is not removed from the workspace.
func TestRemovedContainerRemovesNothing(t *testing.T) {
	for status, stays := range map[string]bool{"exited": false, "running": false, "removing": true, "dead": true} {
		b := holding(t, status, false, &tar.Header{Typeflag: tar.TypeDir, Name: "w"})
		b.o.Write = writesHere
		m := &mirror{source: t.TempDir(), target: "/w", base: tree{}, held: tree{}}
		file := m.had(t, "file")
		_, err := b.bringAll(t.Context(), &child{id: "x", wanted: &wanted{}, mirrors: []*mirror{m}})
		if _, lost := os.Stat(file); (lost == nil) != stays || (err != nil) != stays {
			t.Errorf("%s: %v, %v", status, lost, err)
		}
	}
}

func dup(f *os.File) (*os.File, error) {
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), "held"), nil
}

// A file that a guest makes larger after it was counted is sent as large as it was.
func TestGrownFile(t *testing.T) {
	name := t.TempDir() + "/file"
	if err := os.WriteFile(name, []byte("12345"), 0o644); err != nil {
		t.Fatal(err)
	}
	dir, err := os.Open(path.Dir(name))
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	m := &mirror{}
	if m.seen, err = m.look(dir, func(load) error { return nil }); err != nil {
		t.Fatal(err)
	}
	for _, size := range []int64{5, 1 << 20} { // the first one is a control
		if err := os.Truncate(name, size); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := m.send(tar.NewWriter(&out), dir, "file", &innerSide{}, tree{}); err != nil {
			t.Fatal(err)
		}
		if h, err := tar.NewReader(&out).Next(); err != nil || h.Size != 5 {
			t.Errorf("%d bytes: %+v, %v", size, h, err)
		}
	}
}

// writesHere writes in the test's own process.
func writesHere(dir string, in, out *os.File) (func(), error) {
	from, err := dup(in)
	if err != nil {
		return nil, err
	}
	to, err := dup(out)
	if err != nil {
		return nil, errors.Join(err, from.Close())
	}
	go func() {
		defer to.Close()
		defer from.Close()
		writeback.Main(dir, from, to)
	}()
	return func() {}, nil
}

// had makes a file that both sides of a mirror had when they were compared last.
func (m *mirror) had(t *testing.T, name string) (file string) {
	t.Helper()
	file = m.source + "/" + name
	if err := os.WriteFile(file, []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	dir, err := os.Open(m.source)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	found, err := m.look(dir, func(load) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	m.base = statesOf(found)
	return file
}

// What a container has renamed is under one of its names, also if its files stop coming.
func TestRenameIsNotLost(t *testing.T) {
	for _, cut := range []bool{false, true} {
		b := holding(t, "running", false, &tar.Header{Typeflag: tar.TypeDir, Name: "w"}, &tar.Header{Typeflag: tar.TypeReg, Name: "w/new", Size: 3})
		asked := 0
		b.engine.client.Transport = tap{b.engine.client.Transport, func(string) {}, func(request string) *http.Response {
			if strings.HasPrefix(request, "GET ") && strings.HasSuffix(request, "/archive") {
				asked++
			}
			if asked < 2 || !cut {
				return nil
			}
			return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(""))}
		}}
		b.o.Write = writesHere
		m := &mirror{source: t.TempDir(), target: "/w", held: tree{}}
		old := m.had(t, "old")
		_, err := b.bringAll(t.Context(), &child{id: "x", wanted: &wanted{}, mirrors: []*mirror{m}})
		_, lost := os.Stat(old)
		_, missing := os.Stat(m.source + "/new")
		if (err != nil) != cut || (lost == nil) != cut || (missing == nil) == cut {
			t.Errorf("cut %v: %v; %v, %v", cut, err, lost, missing)
		}
	}
}

// Only what is in the way of a name that comes is removed before all is there.
func TestRemovedFirst(t *testing.T) {
	first, last := inTheWay([]string{"dir/below", "dir/other/x", "README", "old"}, map[string]bool{"dir": true, "readme": true, "old.new": true})
	if !slices.Equal(first, []string{"dir/below", "dir/other/x", "README"}) || !slices.Equal(last, []string{"old"}) {
		t.Errorf("%q, %q", first, last)
	}
}

// A container that has just ended is removed when what it wrote last is in the workspace,
// however late the engine tells of its end.
func TestRemovalWaitsForTheLastWrites(t *testing.T) {
	for _, force := range []string{"", "?force=1"} {
		r := newRig(t, writes)
		late, told := io.Pipe()
		var asks atomic.Bool
		r.tapped(func(request string) {
			if asks.Load() && strings.HasPrefix(request, "GET containers/") && strings.HasSuffix(request, "/json") {
				told.Close() // from now on its end is known
			}
			if _, err := os.Stat(r.workspace + "/last"); err != nil && strings.HasPrefix(request, "DELETE containers/") {
				t.Errorf("it is removed with what it wrote: %v", err)
			}
		}, func(request string) *http.Response {
			if !strings.HasSuffix(request, "/wait") {
				return nil
			}
			return &http.Response{StatusCode: http.StatusOK, Body: late}
		})
		r.run("a", dict{"Cmd": []string{"sh", "-c", "echo -n x > /w/last"}, "HostConfig": dict{"Binds": []string{r.workspace + ":/w"}}})
		testenv.Until(t, "its end", func() bool {
			_, data := r.direct("GET", "/containers/"+r.broker.prefix()+"a/json", nil)
			return strings.Contains(string(data), `"Status":"exited"`)
		})
		asks.Store(true)
		r.must("DELETE", "/containers/a"+force, nil, nil)
		r.has("last", "x")
	}
}

// What an engine leaves out of an archive, and what is below it, is not gone, however many
// names that are.
func TestUntoldNamesStay(t *testing.T) {
	for _, told := range []bool{true, false} {
		b := holding(t, "running", false, &tar.Header{Typeflag: tar.TypeDir, Name: "w"})
		if !told { // the fake engine has a directory under each name
			b.engine.client.Transport = b.engine.client.Transport.(tap).RoundTripper
		}
		b.o.Write = writesHere
		m := &mirror{source: t.TempDir(), target: "/w", held: tree{}}
		if err := os.Mkdir(m.source+"/dir", 0o755); err != nil {
			t.Fatal(err)
		}
		for i := range 150 {
			if err := os.WriteFile(fmt.Sprintf("%s/%d", m.source, i), nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		file := m.had(t, "dir/file")
		_, err := b.bringAll(t.Context(), &child{id: "x", wanted: &wanted{}, mirrors: []*mirror{m}})
		if names, _ := os.ReadDir(m.source); told != (len(names) == 0) || !told && len(names) != 151 {
			t.Errorf("told %v: %d names are left", told, len(names))
		}
		if _, gone := os.Stat(file); err != nil || (gone == nil) == told {
			t.Errorf("told %v: %v, %v", told, err, gone)
		}
	}
}
