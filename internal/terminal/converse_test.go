//go:build linux || darwin

package terminal

import (
	"bufio"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"
)

// While Bawn speaks, the guest gets no key and shows nothing; what it wrote
// meanwhile comes out afterwards, and keys are its own again.
func TestConverse(t *testing.T) {
	u := newPerson(t)
	go u.watch()
	tt := open(t, u.stdio())
	c := guest(t, tt, "sh", "-c", "sleep 0.4; echo meanwhile; cat")
	start(t, tt, Foreground)
	var answer string
	asked := make(chan error, 1)
	go func() {
		asked <- tt.Converse(t.Context(), func(rw Conversation) error {
			if _, err := io.WriteString(rw, "may it? "); err != nil {
				return err
			}
			time.Sleep(800 * time.Millisecond)
			line, err := bufio.NewReader(rw).ReadString('\r')
			answer = line
			return err
		})
	}()
	u.sees("may it? ")
	time.Sleep(700 * time.Millisecond)
	if got := u.screen(); strings.Contains(got, "meanwhile") {
		t.Errorf("the guest wrote into the conversation: %q", got)
	}
	u.types("yes\r")
	if err := <-asked; err != nil || answer != "yes\r" {
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
	time.Sleep(100 * time.Millisecond)
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
