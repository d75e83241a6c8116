package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/bawn-dev/bawn/internal/sandbox/docker"
	"github.com/bawn-dev/bawn/internal/testenv/engine"
)

// docker is measured on an engine of its own, so that nobody else's containers
// count.
func (f *field) docker() ([]way, error) {
	client, err := exec.LookPath("docker")
	if err != nil {
		return nil, err
	}
	e, err := engine.Launch()
	if err != nil {
		return nil, err
	}
	f.closers = append(f.closers, e.Close)
	image, err := e.Make(engine.Busybox)
	if err != nil {
		return nil, err
	}
	f.environ = append(f.environ, "DOCKER_HOST="+e.Host())
	if err := f.configure(fmt.Sprintf("[isolation.docker_options]\nimage = %q\n", image)); err != nil {
		return nil, err
	}
	p := docker.New(docker.Options{Host: e.Socket, Image: image}, docker.Setting{Program: f.bawn, Runtime: filepath.Join(f.who.Home, "run"), Environ: f.environ})
	list, err := f.bawnWays(p, "--ro", filepath.Dir(f.self))
	if err != nil {
		return nil, err
	}
	shown := []string{"--network", "none", "-v", f.who.Workspace + ":/workspace", "-v", filepath.Dir(f.self) + ":" + filepath.Dir(f.self) + ":ro", "-w", "/workspace"}
	run := append([]string{client, "run", "--rm"}, append(shown, image)...)
	name := fmt.Sprintf("bench-%d", os.Getpid())
	if _, err := f.run(append(append([]string{client, "run", "-d", "--name", name}, shown...), image, "sleep", "7200")); err != nil {
		return nil, err
	}
	return append(list, f.ways("docker", "docker", run, []string{client, "exec", name})...), nil
}
