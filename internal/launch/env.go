package launch

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/config"
	"github.com/bawn-dev/bawn/internal/doctor"
	"github.com/bawn-dev/bawn/internal/egress"
	"github.com/bawn-dev/bawn/internal/intent"
	"github.com/bawn-dev/bawn/internal/plugin"
	"github.com/bawn-dev/bawn/internal/runner"
	"github.com/bawn-dev/bawn/internal/sandbox/native"
	"github.com/bawn-dev/bawn/internal/session"
	"github.com/bawn-dev/bawn/internal/skill"
	"github.com/bawn-dev/bawn/internal/verb"
)

// Version is the release that this program is of.
var Version = egress.Release

// An Env is the part of the world that a verb may use.
type Env struct {
	verb.World
	// Providers are those that this program has beside the ones of this package.
	// It is nil in bawn, which becomes bawnd where it needs one of them.
	Providers map[string]Maker
	// Docker serves a guest's Docker API. It is nil in bawn, which becomes bawnd
	// where a session has one.
	Docker func(ContainerSetting) (func(runner.ContainerHost) (end func() error, err error), error)
	// Gateway serves tool servers. It is nil in bawn, which becomes bawnd for it.
	Gateway func(context.Context, GatewaySetting) error
	// Tools serves Bawn's own tools. It is nil in bawn, as Gateway is.
	Tools func(context.Context, ToolsSetting) error

	// CheckSkill reads what steers an agent by the strict rules (package
	// skill/strict). It is nil in bawn, which asks bawnd.
	CheckSkill func(skill.Kind, string) skill.Report

	// CheckDocker says what provider "docker" refuses of its options, where a
	// session may have r. It is nil in bawn, like Docker.
	CheckDocker func(o config.DockerOptions, r bawn.Resources) error
	// CheckEngine says whether guests may create containers with this machine's
	// container engine. It is nil in bawn, which asks bawnd.
	CheckEngine func(ContainerSetting) *doctor.Check

	// LogShare is how many bytes of the log a session may take; 0 is audit.MaxShare.
	LogShare int64

	Args []string // the command line's
	host *host    // where this is the host of a session that others attach to

	preforked *native.Preforked // of the sandbox of a session that is being planned, or nil

	spec      *session.Spec // what this process was started with (launchVerb), or nil
	inherited *os.File      // its source; for a guest's session it ends with the guest
}

// OwnEnv is the world around this process. The providers are Env.Providers.
func OwnEnv(providers map[string]Maker) *Env {
	dir, err := os.Getwd()
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir) // so that ".." leads where the kernel goes
	}
	if err != nil {
		dir = "" // it was removed; not everything needs one
	}
	environ := os.Environ()
	if providers != nil { // this is what bawn was to become
		environ = slices.DeleteFunc(environ, func(kv string) bool { return strings.HasPrefix(kv, becameVariable+"=") })
	}
	e := &Env{World: verb.World{Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Environ: environ, Dir: dir}, Providers: providers}
	e.hidePassphrase(false)
	return e
}

// A GatewaySetting configures the gateway of tool servers.
type GatewaySetting struct {
	Servers []GatewayServer
	// Judge decides, asks and records; see gateway.Options.
	Judge   func(ctx context.Context, a bawn.Action, must string) bawn.Decision
	Report  func(server, what, why string)
	Dir     string   // from which relative paths lead
	In, Out *os.File // of the one client, where HTTP is ""
	HTTP    string   // address to serve at
	Token   string   // that clients show there
}

// A GatewayServer is a plugin that is to be started when it is needed.
type GatewayServer struct {
	Manifest *plugin.Manifest
	Pins     func() (plugin.Pins, error)   // as they are now
	Kept     func() ([]plugin.Tool, error) // as they were pinned; none where they were not kept
	Command  func() (*exec.Cmd, error)     // that starts it; its files must be closed then
}

// A ToolsSetting is what Bawn's own tools are made of.
type ToolsSetting struct {
	Workspace string
	Environ   []string
	Shell     string // that runs commands; "" for none
	Handed    bool   // it hands them to the session socket
	Judge     func(context.Context, intent.Judge) (intent.Verdict, error)
	Request   func(ctx context.Context, want []string, why string) (granted bool, answer string, err error)
	In, Out   *os.File // of the one client
}
