package asking

import (
	"context"
	"os"
	"testing"

	"github.com/bawn-dev/bawn/internal/terminal"
)

// A quietConsole is a terminal at which nobody answers.
type quietConsole struct{}

func (*quietConsole) Converse(ctx context.Context, _ func(terminal.Conversation) error) error {
	<-ctx.Done()
	return context.Cause(ctx)
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
