//go:build linux || darwin

package terminal

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/testenv"
)

// While Bawn speaks, the guest gets no key and shows nothing; what it wrote
// meanwhile comes out afterwards, and keys are its own again.
func TestConverse(t *testing.T) {
	u := newPerson(t)
	go u.watch()
	tt := open(t, u.stdio())
	dir := t.TempDir()
	c := guest(t, tt, "sh", "-c", `until [ -e "$0/go" ]; do sleep 0.01; done; echo meanwhile; >"$0/said"; cat`, dir)
	start(t, tt, Foreground)
	typed := make(chan struct{})
	var answer string
	asked := make(chan error, 1)
	go func() {
		asked <- tt.Converse(t.Context(), func(rw Conversation) error {
			if _, err := io.WriteString(rw, "may it? "); err != nil {
				return err
			}
			<-typed
			line, err := bufio.NewReader(rw).ReadString('\r')
			answer = line
			return err
		})
	}()
	u.sees("may it? ")
	if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	testenv.Until(t, "what the guest writes", func() bool { _, err := os.Stat(filepath.Join(dir, "said")); return err == nil })
	time.Sleep(50 * time.Millisecond) // for it to be shown, wrongly
	if got := u.screen(); strings.Contains(got, "meanwhile") {
		t.Errorf("the guest wrote into the conversation: %q", got)
	}
	u.types("yes\r")
	close(typed)
	if err := testenv.Receive(t, "the answer", asked); err != nil || answer != "yes\r" {
		t.Fatalf("the answer is %q, %v; want yes", answer, err)
	}
	u.sees("meanwhile\r\n")
	u.types("again\r")
	u.sees("again\r\nagain\r\n")
	u.types("\x04")
	if err := errors.Join(c.Wait(), tt.Close()); err != nil {
		t.Error(err)
	}
	if got := u.screen(); strings.Contains(got, "yes") {
		t.Errorf("the answer reached the guest, whose terminal echoed it: %q", got)
	}
}

// A key typed before the question was there can't be its answer.
func TestConverseForgetsEarlierKeys(t *testing.T) {
	u := newPerson(t)
	go u.watch()
	tt := open(t, u.stdio())
	role(t, tt, "rawkey") // takes one key, and leaves the others
	start(t, tt, Foreground)
	u.sees("ready")
	u.types("y\r")
	testenv.Until(t, "the terminal to have taken the keys", func() bool {
		n, err := unix.IoctlGetInt(descriptor(u.tty), queued)
		return err == nil && n == 0
	})
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	err := tt.Converse(ctx, func(rw Conversation) error {
		b := make([]byte, 8)
		n, err := rw.Read(b)
		if n > 0 {
			t.Errorf("read %q, which was typed before", b[:n])
		}
		return err
	})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Converse ended with %v; want the end of its time", err)
	}
}

func TestNobodyToConverseWith(t *testing.T) {
	u := newPerson(t)
	go u.watch()
	tt := open(t, u.stdio())
	err := tt.Converse(t.Context(), func(Conversation) error { return nil })
	if !errors.Is(err, ErrBackground) {
		t.Errorf("before Start: %v; want ErrBackground", err)
	}
	start(t, tt, Foreground)
	if err := tt.Close(); err != nil {
		t.Fatal(err)
	}
	if err := tt.Converse(t.Context(), func(Conversation) error { return nil }); !errors.Is(err, ErrBackground) {
		t.Errorf("after Close: %v; want ErrBackground", err)
	}
}
