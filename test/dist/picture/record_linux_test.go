package picture

import (
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/bawn-dev/bawn/internal/testenv"
)

// TestRecord types into a real program, and keeps what the terminal shows; one that ends
// before it shows what is waited for is an error.
func TestRecord(t *testing.T) {
	testenv.Need(t, "dash")
	c, err := Record(exec.Command("sh", "-c", `printf 'name? '; read -r name; echo "hello $name"`), 80, 24, []Step{{Until: "name? ", Think: 10 * time.Millisecond, Type: "ada\r"}})
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, e := range c.Events {
		all.WriteString(e.Data)
	}
	if got := all.String(); got != "name? ada\r\nhello ada\r\n" {
		t.Errorf("the terminal has shown %q", got)
	}
	if _, err := Record(exec.Command("sh", "-c", "echo bye"), 80, 24, []Step{{Until: "hello"}}); err == nil || !strings.Contains(err.Error(), "bye") {
		t.Errorf("a program that ends: %v", err)
	}
}
