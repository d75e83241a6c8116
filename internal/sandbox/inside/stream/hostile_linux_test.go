package stream

import (
	"bytes"
	"errors"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/intent"
	"github.com/bawn-dev/bawn/internal/ipc"
)

// wired returns a host's end, its control socket, and the other end of its wire.
func wired(t *testing.T) (*Host, *ipc.Conn, *os.File) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	h, err := Open(os.NewFile(uintptr(fds[0]), "wire"))
	if err != nil {
		t.Fatal(err)
	}
	control, err := ipc.New(h.Control(), intent.Limits)
	if err != nil {
		t.Fatal(err)
	}
	other := os.NewFile(uintptr(fds[1]), "other")
	t.Cleanup(func() {
		other.Close()
		h.Close()
		control.Close()
	})
	return h, control, other
}

// TestWhatNoSandboxMaySay ends the tunnel. The control says what one may, on the
// same channels, and goes on.
func TestWhatNoSandboxMaySay(t *testing.T) {
	const in, out = 1, 2 // as order numbers them
	fill := func(n int) (list []frame) {
		for range n {
			list = append(list, frame{kindData, out, make([]byte, chunk)})
		}
		return list
	}
	for name, tt := range map[string]struct {
		frames []frame
		goesOn bool
	}{
		"control: a full window":          {fill(window / chunk), true},
		"more than the window":            {fill(2*window/chunk + 1), false},            // and than the pipe takes meanwhile
		"control: credit that was used":   {[]frame{{kindCredit, 99, number(1)}}, true}, // of a channel that has ended
		"credit that nobody used":         {[]frame{{kindCredit, in, number(1)}}, false},
		"credit of 4 GiB":                 {[]frame{{kindCredit, in, number(1<<32 - 1)}}, false},
		"no data":                         {[]frame{{kindData, out, nil}}, false},
		"data for a channel there is not": {[]frame{{kindData, 77, []byte("x")}}, false},
		"data for what is read":           {[]frame{{kindData, in, []byte("x")}}, false},
		"the end of what is read":         {[]frame{{kindEnd, in, nil}}, false},
		"control: an end":                 {[]frame{{kindEnd, out, nil}}, true},
		"data after the end":              {[]frame{{kindEnd, out, nil}, {kindData, out, []byte("x")}}, false},
		"two ends":                        {[]frame{{kindEnd, out, nil}, {kindEnd, out, nil}}, false},
		"a terminal":                      {[]frame{{kindTerminal, 9, make([]byte, settingsSize)}}, false},
		"a size":                          {[]frame{{kindSize, 9, make([]byte, sizeSize)}}, false},
		"a connection that nobody wants":  {[]frame{{kindDialed, 9, number(0)}}, false},
		"a port of the host":              {[]frame{{kindDial, 9, []byte{0, 22}}}, false},
		"a descriptor":                    {[]frame{{kindControl, 0, encodeControl([]byte(`{}`), []reference{{readable, 9}})}}, false},
		"a message that is no JSON":       {[]frame{{kindControl, 0, encodeControl([]byte(`{`), nil)}}, false},
		"control: a message":              {[]frame{{kindControl, 0, encodeControl([]byte(`{}`), nil)}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			h, control, other := wired(t)
			inR, inW := pipe(t)
			outR, outW := pipe(t)
			if err := unix.SetNonblock(int(outW.Fd()), true); err != nil {
				t.Fatal(err)
			}
			written := make(chan struct{})
			go func() { // somebody takes the output, late: the window fills
				<-written
				_, _ = outR.Read(make([]byte, 1<<20))
			}()
			if err := control.Send(rawMessage(`{"Do":{"ID":1,"Stdio":[true,true,false]}}`), inR, outW); err != nil {
				t.Fatal(err)
			}
			if f, err := readFrame(other); err != nil || f.kind != kindControl {
				t.Fatalf("%+v, %v", f, err)
			}
			inR.Close()
			defer inW.Close()
			// Nothing is taken out of the pipe for as long as it is full.
			if _, err := unix.Write(int(outW.Fd()), make([]byte, 1<<16)); err != nil {
				t.Fatal(err)
			}
			for _, f := range tt.frames {
				if _, err := other.Write(f.encode()); errors.Is(err, unix.EPIPE) && !tt.goesOn {
					break // it has ended already
				} else if err != nil {
					t.Fatal(err)
				}
			}
			close(written)
			select {
			case <-h.Done():
				if tt.goesOn {
					t.Error("the tunnel has ended")
				}
			case <-time.After(map[bool]time.Duration{true: 100 * time.Millisecond, false: 20 * time.Second}[tt.goesOn]):
				if !tt.goesOn {
					t.Error("the tunnel goes on")
				}
			}
		})
	}
}

// TestSingleBytes fills a window with frames of a byte each.
func TestSingleBytes(t *testing.T) {
	r, w := pipe(t)
	fd, err := unix.FcntlInt(w.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err == nil {
		err = unix.SetNonblock(fd, true)
	}
	if err != nil {
		t.Fatal(err)
	}
	s, err := newSink(1, fd, func(frame) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	var want []byte
	put := func(n int) {
		for range n {
			want = append(want, byte(len(want)%251))
			if err := s.take([]byte{want[len(want)-1]}); err != nil {
				t.Fatal(err)
			}
		}
	}
	put(window)
	if err := s.take([]byte{1}); err == nil {
		t.Error("control: the window takes more than it holds")
	}
	held := 0
	for _, piece := range s.queue {
		held += cap(piece) + 24
	}
	if len(s.queue) > window/chunk+1 || held > 2*window {
		t.Errorf("%d bytes wait in %d pieces, which take %d", window, len(s.queue), held)
	}
	go s.run()
	got := make([]byte, 0, 3*window)
	part := make([]byte, 777)
	for len(got) < cap(got) {
		n, err := r.Read(part)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, part[:n]...)
		s.mu.Lock()
		room := min(window-s.waiting, cap(got)-len(want))
		s.mu.Unlock()
		put(room) // while others are written
	}
	if !bytes.Equal(got, want) {
		t.Error("other bytes come out")
	}
	if err := s.end(); err != nil {
		t.Error(err)
	}
	<-s.done
}
