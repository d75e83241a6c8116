package main

import (
	"context"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/doctor"
	"github.com/bawn-dev/bawn/internal/launch"
	"github.com/bawn-dev/bawn/internal/places"
	"github.com/bawn-dev/bawn/internal/policycli"
	"github.com/bawn-dev/bawn/internal/relay"
	"github.com/bawn-dev/bawn/internal/relay/frontend"
	"github.com/bawn-dev/bawn/internal/relaycli"
	"github.com/bawn-dev/bawn/internal/secrets"
	"github.com/bawn-dev/bawn/internal/undocli"
	"github.com/bawn-dev/bawn/internal/verb"
	bawnv1 "github.com/bawn-dev/bawn/proto/bawn/v1"
)

// page is the API and, where it is wanted, the web page.
func page(s relaycli.Serving, state string) relay.Frontend {
	return func(ctx context.Context, r *relay.Relay) error {
		past, reviewer, err := undocli.Past(homeEnv())
		if err != nil {
			return err
		}
		return frontend.Serve(ctx, frontend.Options{
			Runtime: r.Runtime, State: state, AuditDir: r.AuditDir, Queue: r.Queue, History: r.Store.History, Items: r.Store, Recorder: r.Audit, Log: r.Log,
			Socket: func() (net.Listener, error) { return r.Listen(places.APISocket) }, Admit: r.AdmitHuman, Keyless: r.Keyless(places.APISocket), Busy: r.Busy, User: userName(), Version: launch.Version, Explain: explain, Mechanisms: mechanisms, Past: past, Copies: reviewer,
			OnDemand: r.OnDemand, Unit: r.Unit(), Stop: r.Stop, Ready: s.Ready,
			Page: frontend.Page{
				Listen: s.Listen, Name: s.Name, CertFile: s.Cert, KeyFile: s.Key,
				Notices: filepath.Join(configDir(), "notices"), Secret: secret,
			},
		})
	}
}

// userName names the person who answers over the socket. Only this user's processes
// can connect to it.
func userName() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return "the user"
}

// configDir is $XDG_CONFIG_HOME/bawn, else ~/.config/bawn.
func configDir() string {
	if dir := os.Getenv("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "bawn")
	}
	return filepath.Join(os.Getenv("HOME"), ".config", "bawn")
}

// explain is "bawn policy explain --json". Where no directory is named it is the
// home directory: the relay's own says nothing.
func explain(_ context.Context, m *bawnv1.PolicyServiceExplainRequest) ([]byte, error) {
	return policycli.Explain(homeEnv(), policycli.Explained{
		Action: m.GetAction(), Kind: m.GetKind(), Operation: m.GetOperation(), Dir: m.GetDir(), Workspace: m.GetWorkspace(), Mode: m.GetMode(), Contained: m.GetContained(),
	})
}

// homeEnv is that of a verb which is called in the home directory.
func homeEnv() *launch.Env {
	return &launch.Env{World: verb.World{Stdout: os.Stdout, Stderr: os.Stderr, Environ: os.Environ(), Dir: os.Getenv("HOME")}}
}

// mechanisms is what "bawn doctor" finds.
func mechanisms() (out []*bawnv1.Mechanism) {
	for _, c := range doctor.Examine().Checks {
		out = append(out, &bawnv1.Mechanism{Name: c.Name, Works: c.OK, Detail: c.Detail})
	}
	return out
}

// secret reads the address of a service for notices from the vault.
func secret(ctx context.Context, name string) (bawn.Secret, error) {
	environ := slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, secrets.PassphraseFD+"=") })
	o, err := secrets.Standard(environ, "")
	if err != nil {
		return bawn.Secret{}, err
	}
	v, err := secrets.Open(o)
	if err != nil {
		return bawn.Secret{}, err
	}
	return v.Unbound(ctx, name)
}
