package gateway

import (
	"os"
	"os/exec"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// BenchmarkCall compares a call through the gateway, where a judge allows it,
// with the same server's own answer.
func BenchmarkCall(b *testing.B) {
	args := map[string]any{"path": "/a/b/c"}
	b.Run("direct", func(b *testing.B) {
		self, err := os.Executable()
		if err != nil {
			b.Fatal(err)
		}
		cmd := exec.Command(self)
		cmd.Env = append(os.Environ(), serverVariable+"=new")
		s, err := mcp.NewClient(&mcp.Implementation{Name: "b", Version: "1"}, nil).Connect(b.Context(), &mcp.CommandTransport{Command: cmd}, nil)
		if err != nil {
			b.Fatal(err)
		}
		defer s.Close()
		for b.Loop() {
			if text, failed := invoke(b, s, "echo", args); failed {
				b.Fatal(text)
			}
		}
	})
	b.Run("gateway", func(b *testing.B) {
		s := newRig(b, Server{Name: "a", Start: program("new")}).client(b, versions[1], nil)
		for b.Loop() {
			if text, failed := invoke(b, s, "a__echo", args); failed {
				b.Fatal(text)
			}
		}
	})
}
