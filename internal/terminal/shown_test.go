//go:build linux || darwin

package terminal

import (
	"io"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/testenv"
)

// TestTypedBeforeItIsShown: over a slow line a key that was typed before the question was
// on the screen answers nothing, also behind answers of the terminal to the guest. In the
// control nobody waits, and the key counts.
func TestTypedBeforeItIsShown(t *testing.T) {
	probe := regexp.MustCompile(`(?:\x1b\[[0-9]+;[0-9]+H\x1b\[6n){3}`)
	for name, plain := range map[string]bool{"told": false, "control": true} {
		t.Run(name, func(t *testing.T) {
			u := newPerson(t)
			go u.watch()
			tt := open(t, u.stdio())
			if plain {
				tt.Plain()
			}
			start(t, tt, Foreground)
			got := make(chan string, 1)
			go tt.Converse(t.Context(), func(rw Conversation) error {
				io.WriteString(rw, "may it? ")
				err := rw.Pause(time.Nanosecond)
				io.WriteString(rw, "now ")
				if err == nil {
					b := make([]byte, 1)
					_, err = rw.Read(b)
					got <- string(b)
				}
				return err
			})
			u.sees("may it? ")
			if plain {
				u.sees("now ") // the pause is over
				u.types("y")
			} else {
				u.sees("\x1b8")
				asks := probe.FindString(u.screen())
				answer := strings.NewReplacer("H\x1b[6n", "R").Replace(asks)
				u.types("y\x1b[1;1R\x1b[2;2Ry\x1b[3;3R") // meant for the guest, as are its own questions
				for range 20 {                           // one of these is read, if that has ended the pause
					u.types("y")
					testenv.Until(t, "the key to be taken", func() bool {
						n, err := unix.IoctlGetInt(descriptor(u.tty), queued)
						return err == nil && n == 0 || len(got) > 0
					})
				}
				u.types("y" + answer)
				u.sees("now ")
				u.types("n")
			}
			if key, want := <-got, map[bool]string{false: "n", true: "y"}[plain]; key != want {
				t.Errorf("%q counts, want %q", key, want)
			}
			if !plain && !tt.tells {
				t.Error("that the terminal tells is not remembered")
			}
		})
	}
}
