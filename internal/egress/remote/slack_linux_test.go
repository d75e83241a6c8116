package remote

import (
	"bytes"
	"os/exec"
	"strconv"
	"testing"
)

// TestSlack reads the slack that a started program has. The control is another program.
func TestSlack(t *testing.T) {
	told := func(start func(*exec.Cmd) error) string {
		cmd := exec.Command("cat", "/proc/self/timerslack_ns")
		var out bytes.Buffer
		cmd.Stdout = &out
		if err := start(cmd); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	want := strconv.Itoa(slack) + "\n"
	if got := told(startProcess); got != want {
		t.Errorf("the relay: got %q, want %q", got, want)
	}
	if got := told((*exec.Cmd).Start); got == want {
		t.Errorf("another program has it too: %q", got)
	}
}
