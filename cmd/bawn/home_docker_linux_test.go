package main

import (
	"os"
	"testing"

	"github.com/bawn-dev/bawn/internal/testenv"
	"github.com/bawn-dev/bawn/internal/testenv/engine"
	"github.com/bawn-dev/bawn/internal/testenv/testhome"
)

// TestHomeDocker is the hour in an empty home with provider docker.
func TestHomeDocker(t *testing.T) {
	testenv.Whole(t)
	testenv.Need(t, "docker")
	e, bin := engine.Start(t), t.TempDir()
	if err := testhome.Programs(bin, "cmd/bawn", "cmd/bawnd", "cmd/bawn-egress"); err != nil { // a container starts bawnd
		t.Fatal(err)
	}
	runScripts(t, homeRoot(t), func(name string) bool { return name == "home-hour.txtar" },
		"PATH", bin+":"+os.Getenv("PATH"), "DOCKER_HOST", e.Host(), "PROVIDER", "--provider docker --image "+e.Image(t, engine.Hour))
}
