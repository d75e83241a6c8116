package main

import (
	"os"
	"path/filepath"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/config"
	"github.com/bawn-dev/bawn/internal/launch"
	"github.com/bawn-dev/bawn/internal/places"
	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/sandbox/docker"
)

// providers are those that bawn does not link.
var providers = map[string]launch.Maker{docker.Name: dockerProvider}

// dockerProvider is what the configuration makes of the provider "docker". The
// program in its containers is bawn, which is beside this one.
func dockerProvider(s launch.Setting) sandbox.Provider {
	where := docker.Setting{Cache: s.Cache(docker.Name), Native: s.Native(), Environ: s.Environ()}
	if self, err := os.Executable(); err == nil {
		where.Program = filepath.Join(filepath.Dir(self), "bawn")
	}
	if state, err := places.State(os.Getenv); err == nil {
		where.Runtime = places.Runtime(os.Getenv, state)
	}
	var o docker.Options
	if s.Config != nil {
		o = dockerOptions(s.Config.Docker())
	}
	return docker.New(o, where)
}

// dockerOptions are the provider's own words for those of the configuration.
func dockerOptions(c config.DockerOptions) docker.Options {
	return docker.Options{
		Host: c.Host, Image: c.Image, ExtraArgs: c.ExtraArgs, Allowed: c.AllowArgs, Runtime: c.Runtime, Workspace: c.Workspace, MemorySwapMB: c.MemorySwapMB,
	}
}

// checkDocker is what "bawn config check" wants to know of them.
func checkDocker(o config.DockerOptions, r bawn.Resources) error { return dockerOptions(o).Check(r) }
