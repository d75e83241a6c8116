package audit

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"github.com/bawn-dev/bawn"
)

func seeds(f *testing.F) {
	log, head := logBytes(f, 3)
	f.Add(log, head)
	f.Add(log[:len(log)-9], head)
	f.Add(log, []byte{})
	f.Add([]byte{}, []byte{})
	f.Add([]byte("\n\n\n"), position{}.head())
	f.Add(append(bytes.Repeat([]byte("x"), maxLine+3), log...), head)
}

// FuzzVerify: nothing panics, and a log in order is one that Query reads to its
// end and that any shorter file is not.
func FuzzVerify(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, log, head []byte) {
		r, err := check(bytes.NewReader(log), int64(len(log)), head)
		if err != nil {
			t.Fatal(err)
		}
		if r.Fault != nil {
			_ = r.Fault.Error() // must not panic
			return
		}
		n := uint64(0)
		for ln := range forward(bytes.NewReader(log), 0, int64(len(log))) {
			if _, err := parseRecord(ln.data); err != nil || !ln.whole {
				t.Fatalf("log in order with line %d: %v", ln.number, err)
			}
			n++
		}
		if n != r.Records || r.Size != int64(len(log)) {
			t.Errorf("%d lines, %d bytes; report %+v", n, len(log), r)
		}
		if p, ok := parseHead(head); ok && p.size > 0 {
			if cut := checkBytes(t, log[:p.size-1], head); cut.Fault == nil {
				t.Error("a cut log is in order")
			}
		}
	})
}

// FuzzQuery: both directions yield the same lines, whatever is in the file.
func FuzzQuery(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, log, pattern []byte) {
		collect := func(fl Filter, back bool) (out []string) {
			lines := forward(bytes.NewReader(log), 0, int64(len(log)))
			if back {
				lines = backward(bytes.NewReader(log), int64(len(log)))
			}
			choose(lines, fl, func(e Entry, err error) bool {
				if err != nil {
					out = append(out, "!")
				} else {
					out = append(out, string(e.Raw))
				}
				return true
			})
			return out
		}
		fl := Filter{Resource: string(pattern[:min(len(pattern), 50)]), Since: time.Unix(0, 0)}
		forth, back := collect(fl, false), collect(fl, true)
		slices.Reverse(back)
		if !slices.Equal(forth, back) {
			t.Errorf("forward %q, backward %q", forth, back)
		}
	})
}

// FuzzEncode: every event becomes one record that parses and stays in bounds.
func FuzzEncode(f *testing.F) {
	f.Add("/x", "a\nb\xff", "k", 1)
	f.Add("\u202e", "token=x", "\x00", 3000)
	f.Fuzz(func(t *testing.T, resource, arg, key string, times int) {
		e := bawn.Event{Resource: resource, Details: map[string]string{key: arg}}
		for range max(0, times%5000) {
			e.Args = append(e.Args, arg)
		}
		b, err := encode(e, nil)
		if err != nil {
			t.Fatal(err)
		}
		line, _ := appendRecord(nil, 1, digest{}, b)
		if _, err := parseRecord(line[:len(line)-1]); err != nil {
			t.Errorf("encode(%q) = %q: %v", e.Resource, b, err)
		}
	})
}
