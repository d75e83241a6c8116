package docker

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn/internal/sandbox"
	docker "github.com/bawn-dev/bawn/internal/testenv/engine"
)

// cli is the engine's own program.
func cli(b *testing.B, e *docker.Engine, args ...string) string {
	b.Helper()
	cmd := exec.Command("docker", args...)
	cmd.Env = append(os.Environ(), "DOCKER_HOST="+e.Host())
	out, err := cmd.Output()
	if err != nil {
		b.Fatalf("docker %q: %v", args, err)
	}
	return strings.TrimSpace(string(out))
}

// BenchmarkCold makes a session, runs one command and ends it; "docker" is the
// engine's own way to do that.
func BenchmarkCold(b *testing.B) {
	e := docker.Shared(b)
	image := e.Image(b, docker.Busybox)
	b.Run("bawn", func(b *testing.B) {
		p := provide(b, Options{})
		req := request(b)
		for b.Loop() {
			plan, err := p.Plan(req)
			if err != nil {
				b.Fatal(err)
			}
			g, err := p.Start(plan, func(sandbox.Denial) {})
			if err != nil {
				b.Fatal(err)
			}
			execute(b, g, "true")
			if err := g.Close(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("docker", func(b *testing.B) {
		for b.Loop() {
			cli(b, e, "run", "--rm", "--network", "none", image, "true")
		}
	})
}

// BenchmarkWarm runs a command in a session that is there.
func BenchmarkWarm(b *testing.B) {
	e := docker.Shared(b)
	b.Run("bawn", func(b *testing.B) {
		g, _ := started(b, provide(b, Options{}), request(b))
		for b.Loop() {
			execute(b, g, "true")
		}
	})
	b.Run("docker", func(b *testing.B) {
		id := cli(b, e, "run", "-d", "--rm", "--network", "none", e.Image(b, docker.Busybox), "sleep", "1000")
		defer cli(b, e, "kill", id)
		for b.Loop() {
			cli(b, e, "exec", id, "true")
		}
	})
}
