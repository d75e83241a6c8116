package quick

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bawn-dev/bawn/internal/intent"
	"github.com/bawn-dev/bawn/internal/shell/invocation"
)

func TestNames(t *testing.T) {
	if !slices.Equal(names[:], invocation.Names) {
		t.Errorf("got %q, want %q", names, invocation.Names)
	}
	for path, want := range map[string]bool{
		"/bin/sh": true, "zsh": true, "/usr/bin/dash": true, "": false, "/": false, "/bin/sh/": false, "/bin/fish": false, "/sh/bawn": false,
	} {
		if IsShell(path) != want {
			t.Errorf("%q: %v", path, !want)
		}
	}
}

func TestFits(t *testing.T) {
	for line, want := range map[string]bool{
		"sh|-c|true": true, "/bin/bash|-lc|make test": true, "-zsh|-c|ls": true, "sh|-euc|:": true, "sh|-c|a|b|c": true,
		"sh|-c|./bawn request": true, "sh|-c|cd x && bawn request": true, "sh|-c|bun run": true, "sh|-c|b": true, "sh|-c|ba && x": true, "sh|-c|bawk": true,
		"sh": false, "sh|-c": false, "sh|-c|": false, "sh|true": false, "sh|-s|-c|true": false, "sh|-c|-e|true": false, "sh|-c|+e|true": false,
		"sh|-oc|pipefail|true": false, "sh|-l|true": false, "sh|c|true": false, "fish|-c|true": false, "bawn|-c|true": false, "sh|--|-c|true": false,
		"sh|-c|bawn request": false, "sh|-c| \tbawn run": false, "sh|-c|'bawn' run": false, `sh|-c|b\awn run`: false, "sh|-c|b''awn run": false,
		"sh|-c|# x\nbawn run": false, "sh|-c|\nbawn run": false, "sh|-c|(bawn run)": false, "sh|-c|/x/bawn hook claude": false, "sh|-c|$X": false,
	} {
		if got := Fits(strings.Split(line, "|")); got != want {
			t.Errorf("%q: %v", line, got)
		}
	}
}

// FuzzFits shows that what fits is a text to Parse as well.
func FuzzFits(f *testing.F) {
	for _, s := range []string{"sh\x00-c\x00true", "-bash\x00-lc\x00x\x00y", "sh\x00-ce\x00-\x00x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		argv := strings.Split(s, "\x00")
		if !Fits(argv) {
			return
		}
		call, err := invocation.Parse(argv)
		if err != nil || call.Source != invocation.Text || call.Text != argv[2] || !slices.Equal(call.Params, argv[3:]) {
			t.Errorf("%q: %+v, %v", argv, call, err)
		}
	})
}

// FuzzHello shows that a first message says the very words, to who reads it.
func FuzzHello(f *testing.F) {
	f.Add("sh\x00-c\x00echo \"a\\b\"\n\x01<é>", "/w/\u2028", "A=b\x00C=\x7f")
	f.Add("\xff", "/", "")
	f.Fuzz(func(t *testing.T, argv, dir, environ string) {
		want := intent.Exec{Argv: strings.Split(argv, "\x00"), Dir: dir, Env: strings.Split(environ, "\x00"), Stdio: [3]bool{true, true, true}}
		frame := hello(want.Argv, dir, want.Env)
		if frame == nil {
			if json.Valid([]byte(argv)) && len(argv)+len(dir)+len(environ) < 1000 && strings.ToValidUTF8(argv+dir+environ, "") == argv+dir+environ {
				t.Errorf("%q: no message", argv)
			}
			return
		}
		if n := binary.BigEndian.Uint32(frame); int(n) != len(frame)-header {
			t.Fatalf("a frame of %d bytes says %d", len(frame)-header, n)
		}
		d := json.NewDecoder(bytes.NewReader(frame[header:]))
		d.DisallowUnknownFields()
		var got intent.Hello
		if err := d.Decode(&got); err != nil || got.Valid() != nil {
			t.Fatalf("%s: %v", frame, err)
		}
		if diff := cmp.Diff(want, *got.Exec); diff != "" {
			t.Error(diff)
		}
	})
}

func framed(t testing.TB, replies ...intent.Reply) (b []byte) {
	t.Helper()
	for _, r := range replies {
		text, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		b = append(binary.BigEndian.AppendUint32(b, uint32(len(text))), text...)
	}
	return b
}

// TestExit reads what a session socket writes, cut anywhere.
func TestExit(t *testing.T) {
	started, seven := intent.Reply{Started: true}, intent.Reply{Exit: &intent.Exit{Code: 7}}
	for _, tt := range []struct {
		name    string
		replies []intent.Reply
		code    int
		ended   bool
		known   bool
	}{
		{"nothing", nil, 0, false, true},
		{"started", []intent.Reply{started}, 0, false, true},
		{"an end", []intent.Reply{started, seven}, 7, true, true},
		{"an end at once", []intent.Reply{{Exit: &intent.Exit{Code: 255}}}, 255, true, true},
		{"by a signal", []intent.Reply{started, {Exit: &intent.Exit{Code: 143, Signal: 15}}}, 0, false, false},
		{"no code of a process", []intent.Reply{{Exit: &intent.Exit{Code: 256}}}, 256, false, false},
		{"a negative code", []intent.Reply{{Exit: &intent.Exit{Code: -1}}}, 0, false, false},
		{"a statement", []intent.Reply{{Exit: &intent.Exit{Code: 7}, State: &intent.State{Dir: "/"}}}, 0, false, false},
		{"denied", []intent.Reply{{Denied: &intent.Refusal{Rule: "r", Reason: strings.Repeat("x", 500)}}}, 0, false, false},
		{"denied at length", []intent.Reply{{Denied: &intent.Refusal{Rule: "r", Reason: strings.Repeat("x", 5000)}}}, 0, false, false},
		{"stopped", []intent.Reply{started, {Stopped: 20}}, 0, false, false},
	} {
		said := framed(t, tt.replies...)
		code, ended, known := exit(said)
		if ended != tt.ended || known != tt.known || ended && code != tt.code {
			t.Errorf("%s: got %d, %v, %v", tt.name, code, ended, known)
		}
		for n := range len(said) {
			if _, ended, known := exit(said[:n]); ended || !known && tt.known {
				t.Errorf("%s, %d bytes of %d: %v, %v", tt.name, n, len(said), ended, known)
			}
		}
	}
}

// FuzzExit shows that an end is one to who reads JSON, too.
func FuzzExit(f *testing.F) {
	f.Add(framed(f, intent.Reply{Started: true}, intent.Reply{Exit: &intent.Exit{Code: 3}}))
	f.Add([]byte("\x00\x00\x00\x1d{\"Exit\":{\"Code\":01,\"Signal\":0}}"))
	f.Fuzz(func(t *testing.T, said []byte) {
		code, ended, _ := exit(said)
		if !ended {
			return
		}
		for {
			n := binary.BigEndian.Uint32(said)
			var r intent.Reply
			if err := json.Unmarshal(said[header:header+n], &r); err != nil {
				t.Fatalf("%q: %v", said, err)
			}
			if said = said[header+n:]; r.Started {
				continue
			}
			if r.Exit == nil || r.Exit.Code != code || r.Exit.Signal != 0 {
				t.Fatalf("got %d of %+v", code, r)
			}
			return
		}
	})
}
