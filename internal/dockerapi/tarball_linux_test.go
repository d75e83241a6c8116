package dockerapi

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bawn-dev/bawn/internal/testenv"
)

// archiveOf makes a tar stream.
func archiveOf(t testing.TB, list ...tar.Header) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, h := range list {
		text := []byte(nil)
		if h.Typeflag == tar.TypeReg {
			text = []byte("text of " + h.Name)
			h.Size = int64(len(text))
		}
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(text); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// modes are the types and modes of the files of a tar stream.
func modes(t testing.TB, data []byte) map[string]int64 {
	t.Helper()
	out := map[string]int64{}
	for r := tar.NewReader(bytes.NewReader(data)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		out[string(h.Typeflag)+" "+h.Name] = h.Mode & 0o7777 // engines add the type
		if len(h.Xattrs) > 0 {                               //nolint:staticcheck // the old form is one of those that engines obey
			out[h.Name+" has attributes"] = 1
		}
	}
}

// docker cp makes no device and no program that runs as its owner. The engine
// itself makes both.
func TestArchivesMakeOnlyFiles(t *testing.T) {
	r := newRig(t, nil)
	r.run("c", sleeper(nil))
	var engineID string
	for _, c := range r.broker.all() {
		engineID = c.id
	}
	tools := archiveOf(t,
		tar.Header{Typeflag: tar.TypeReg, Name: "su", Mode: 0o6755},
		tar.Header{Typeflag: tar.TypeReg, Name: "cap", Mode: 0o755, PAXRecords: map[string]string{"SCHILY.xattr.security.capability": "\x01\x00\x00\x02\xff\xff\xff\xff\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"}},
		tar.Header{Typeflag: tar.TypeDir, Name: "dir", Mode: 0o3777},
		tar.Header{Typeflag: tar.TypeSymlink, Name: "link", Linkname: "su", Mode: 0o777},
	)
	device := archiveOf(t, tar.Header{Typeflag: tar.TypeChar, Name: "null", Mode: 0o666, Devmajor: 1, Devminor: 3})
	get := func() map[string]int64 {
		_, data := r.direct("GET", "/containers/"+engineID+"/archive?path=/tmp/.", nil)
		return modes(t, data)
	}
	r.must("PUT", "/containers/c/archive?path=/tmp", tools, nil)
	got := get()
	want := map[string]int64{"5 ./": got["5 ./"], "0 ./su": 0o755, "0 ./cap": 0o755, "5 ./dir/": 0o1777, "2 ./link": 0o777}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if status, text := r.call("PUT", "/containers/c/archive?path=/tmp", device); status != http.StatusForbidden || !strings.Contains(string(text), "is a device") {
		t.Errorf("a device: %d %s", status, text)
	}
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := z.Write(device); err != nil || z.Close() != nil {
		t.Fatal(err)
	}
	if status, text := r.call("PUT", "/containers/c/archive?path=/tmp", packed.Bytes()); status != http.StatusForbidden {
		t.Errorf("a device, compressed: %d %s", status, text)
	}
	if _, made := get()["3 ./null"]; made {
		t.Error("there is a device")
	}
	if status, text := r.call("PUT", "/containers/c/archive?path=/nowhere", tools); status != http.StatusNotFound {
		t.Errorf("a place that is not there: %d %s", status, text)
	}
	// The control: the engine makes them.
	r.direct("PUT", "/containers/"+engineID+"/archive?path=/tmp", tools)
	r.direct("PUT", "/containers/"+engineID+"/archive?path=/tmp", device)
	after := get()
	if _, made := after["3 ./null"]; !made || after["0 ./su"]&0o6000 == 0 || after["./cap has attributes"] == 0 {
		t.Errorf("control: the engine made %v", after)
	}
}

// What docker stats and docker top say names nothing of the host's or the
// engine's.
func TestUsageHidesTheEngine(t *testing.T) {
	r := newRig(t, nil)
	id := r.run("c", dict{"Cmd": []string{"sh", "-c", "sleep 1000 & wait"}})
	var stats map[string]any
	r.must("GET", "/containers/c/stats?stream=0&one-shot=1", nil, &stats)
	if stats["name"] != "/c" || stats["id"] != id || stats["memory_stats"] == nil {
		t.Errorf("stats: %v", stats)
	}
	testenv.Until(t, "both processes with their own numbers", func() bool { // the second comes a moment later
		var list struct{ Titles, Processes any }
		r.must("GET", "/containers/c/top", nil, &list)
		text, err := json.Marshal(list)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Contains(string(text), `["root","1","0",`) && strings.Contains(string(text), `["root","2","1",`)
	})
	_, raw := r.direct("GET", "/containers/"+id+"/stats?stream=0&one-shot=1", nil)
	if !strings.Contains(string(raw), r.broker.prefix()) {
		t.Errorf("control: the engine names the container otherwise: %s", raw)
	}
}

func FuzzArchive(f *testing.F) {
	f.Add(archiveOf(f, tar.Header{Typeflag: tar.TypeReg, Name: "a", Mode: 0o4755}))
	f.Add(archiveOf(f, tar.Header{Typeflag: tar.TypeBlock, Name: "b"}))
	f.Add([]byte{0x1f, 0x8b, 8})
	f.Fuzz(func(t *testing.T, data []byte) {
		a, err := readArchive(bytes.NewReader(data))
		if err != nil {
			return
		}
		var out bytes.Buffer
		if a.rewrite(&out) != nil {
			return
		}
		for name, mode := range modes(t, out.Bytes()) {
			if mode&0o6000 != 0 || strings.HasPrefix(name, "3 ") || strings.HasPrefix(name, "4 ") || strings.HasSuffix(name, "has attributes") {
				t.Errorf("%q %o", name, mode)
			}
		}
	})
}
