// Command testcontainers runs what testcontainers-go is used for, against
// $DOCKER_HOST, and says "testcontainers-go done".
package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/network"
	"github.com/testcontainers/testcontainers-go/wait"
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("testcontainers-go done")
}

func run(ctx context.Context) error {
	net, err := network.New(ctx)
	if err != nil {
		return fmt.Errorf("network: %w", err)
	}
	server, err := testcontainers.Run(ctx, os.Getenv("BB"),
		testcontainers.WithExposedPorts("8000/tcp"), testcontainers.WithCmd("sh", "-c", "echo ready; httpd -f -p 8000 -h /www"),
		testcontainers.WithFiles(testcontainers.ContainerFile{Reader: strings.NewReader("the page"), ContainerFilePath: "/www/page", FileMode: 0o644}),
		network.WithNetwork([]string{"server"}, net),
		testcontainers.WithWaitStrategy(wait.ForLog("ready"), wait.ForListeningPort("8000/tcp")))
	if err != nil {
		return fmt.Errorf("run: %w", err)
	}
	at, err := server.PortEndpoint(ctx, "8000/tcp", "http")
	if err != nil {
		return err
	}
	resp, err := http.Get(at + "/page")
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if text, err := io.ReadAll(resp.Body); err != nil || string(text) != "the page" {
		return fmt.Errorf("the page is %q, %w", text, err)
	}
	code, out, err := server.Exec(ctx, []string{"sh", "-c", "echo in exec; exit 3"})
	if err != nil || code != 3 {
		return fmt.Errorf("exec: %d, %w", code, err)
	}
	if text, _ := io.ReadAll(out); !strings.Contains(string(text), "in exec") {
		return fmt.Errorf("exec wrote %q", text)
	}
	what := "testcontainers"
	built, err := testcontainers.GenericContainer(ctx, testcontainers.GenericContainerRequest{Started: true, ContainerRequest: testcontainers.ContainerRequest{
		FromDockerfile: testcontainers.FromDockerfile{Context: os.Getenv("CONTEXT"), BuildArgs: map[string]*string{"WHAT": &what}},
		Cmd:            []string{"cat", "/made"}, WaitingFor: wait.ForLog("testcontainers"), Networks: []string{net.Name},
	}})
	if err != nil {
		return fmt.Errorf("build: %w", err)
	}
	for _, c := range []testcontainers.Container{built, server} {
		if err := testcontainers.TerminateContainer(c); err != nil {
			return err
		}
	}
	return net.Remove(ctx)
}
