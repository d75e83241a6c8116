package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/approval/link"
	"github.com/bawn-dev/bawn/internal/places"
	"github.com/bawn-dev/bawn/internal/relay"
	"github.com/bawn-dev/bawn/internal/relay/api"
	"github.com/bawn-dev/bawn/internal/relaycli"
	"github.com/bawn-dev/bawn/internal/verb"
	"github.com/bawn-dev/bawn/proto/bawn/v1/bawnv1connect"
)

// isRelay reports whether the words are a verb of the relay and its human.
func isRelay(args []string) bool { return len(args) > 0 && slices.Contains(relaycli.Verbs, args[0]) }

// runRelay runs such a verb.
func runRelay(args []string) int {
	return relaycli.Main(args, &relaycli.Env{World: verb.World{Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Environ: os.Environ()}, Approvals: approvals, Devices: devices, System: system, State: relayState, Serve: serve, Background: background, StopUnits: stopUnits, Now: time.Now})
}

// socket returns the path of the relay's API and the directory of its log.
func socket() (path, state string, err error) {
	if state, err = places.State(os.Getenv); err != nil {
		return "", "", err
	}
	return filepath.Join(places.Runtime(os.Getenv, state), places.APISocket), state, nil
}

// approvals reaches the questions of the user's relay.
func approvals(ctx context.Context, start bool) (bawnv1connect.ApprovalServiceClient, error) {
	path, state, err := socket()
	if err != nil {
		return nil, err
	}
	switch {
	case start:
		if err := startRelay(ctx, path, state); err != nil {
			return nil, err
		}
	case !link.Listens(path):
		return nil, relaycli.ErrNoRelay
	}
	return bawnv1connect.NewApprovalServiceClient(api.Client(path), "http://relay"), nil
}

// startRelay starts a relay on demand where none runs.
func startRelay(ctx context.Context, path, state string) error {
	return start(ctx, link.Program{Args: []string{"serve", "--on-demand"}, Socket: path, Stopped: filepath.Join(state, places.RelayStopped)}, state)
}

// background starts this program with these words, and returns when it serves.
func background(ctx context.Context, words []string) error {
	path, state, err := socket()
	if err != nil {
		return err
	}
	return start(ctx, link.Program{Args: words, Socket: path}, state)
}

func start(ctx context.Context, p link.Program, state string) error {
	self, err := os.Executable()
	if err == nil {
		err = os.MkdirAll(state, 0o700)
	}
	if err != nil {
		return err
	}
	p.Path, p.Environ, p.Log = self, os.Environ(), filepath.Join(state, relay.LogName)
	return p.Ensure(ctx)
}

// system reaches the relay that runs.
func system(context.Context) (bawnv1connect.SystemServiceClient, error) {
	path, _, err := socket()
	return bawnv1connect.NewSystemServiceClient(api.Client(path), "http://relay"), err
}

func relayState() (string, error) { return places.State(os.Getenv) }

// stopUnits stops what "bawn serve --unit" prints: with its socket there the system
// would start the relay again.
func stopUnits(ctx context.Context) error {
	cmd := exec.CommandContext(ctx, "systemctl", "--user", "stop", "bawn.socket", "bawn.service")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("stop the units that run the relay (%q): %w: %s", cmd.Args, err, bytes.TrimSpace(out))
	}
	return nil
}

// devices reaches the devices of the relay's web page.
func devices(context.Context) (bawnv1connect.DeviceServiceClient, error) {
	path, _, err := socket()
	return bawnv1connect.NewDeviceServiceClient(api.Client(path), "http://relay"), err
}

// serve is the relay.
func serve(ctx context.Context, s relaycli.Serving) error {
	if s.Unit {
		return writeUnit(s)
	}
	state, err := places.State(os.Getenv)
	if err != nil {
		return err
	}
	log := os.Stderr
	if s.Log {
		if log, err = os.OpenFile(filepath.Join(state, relay.LogName), os.O_WRONLY|os.O_CREATE|os.O_APPEND|unix.O_NOFOLLOW, 0o600); err != nil {
			return err
		}
		defer log.Close()
	}
	return relay.Serve(ctx, relay.Options{
		Runtime: places.Runtime(os.Getenv, state), State: state, AuditDir: filepath.Join(state, "audit"),
		OnDemand: s.OnDemand, Environ: os.Environ(), Stderr: log, Frontends: []relay.Frontend{page(s, state)},
	})
}

// writeUnit prints how the system runs the relay: by the program of this name
// beside us, else by ourselves, which serves as well.
func writeUnit(s relaycli.Serving) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	if bawn := filepath.Join(filepath.Dir(program), "bawn"); isFile(bawn) {
		program = bawn
	}
	words, err := s.Words()
	if err != nil {
		return err
	}
	_, err = os.Stdout.WriteString(relay.Units(runtime.GOOS, append([]string{program}, words...)...))
	return err
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}
