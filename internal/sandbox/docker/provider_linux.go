package docker

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/moby/moby/client"

	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/sandbox/kernel"
)

// Provider has a container engine make sandboxes. It may be used from several
// goroutines.
type Provider struct {
	options Options
	setting Setting
	host    string

	mu     sync.Mutex
	engine *engine // once it was needed
	found  *probed // likewise
}

// New prepares a provider. Nothing is asked of the engine before somebody wants
// to know something.
func New(o Options, s Setting) *Provider {
	p := &Provider{options: o, setting: s}
	p.host = findHost(o.Host, p.getenv)
	return p
}

func (p *Provider) getenv(name string) string {
	for _, kv := range slices.Backward(p.setting.Environ) {
		if v, ok := strings.CutPrefix(kv, name+"="); ok {
			return v
		}
	}
	return ""
}

// Name returns "docker".
func (*Provider) Name() string { return Name }

// connected returns the engine, which may not answer.
func (p *Provider) connected() (*engine, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.engine != nil {
		return p.engine, nil
	}
	e, err := connect(p.host)
	if err == nil {
		p.engine = e
	}
	return e, err
}

// Plan makes a plan. It asks the engine for the image, and what it can do, and
// touches nothing. It errs with a *sandbox.MismatchError if the isolation asks
// for more than can be enforced here, with an *OptionError or a *FlagError if
// the configuration can't be followed, and with an *EngineError if the engine
// does not answer.
func (p *Provider) Plan(req sandbox.Request) (sandbox.Plan, error) {
	if err := p.options.Check(req.Session.Isolation.Resources); err != nil {
		return nil, p.pin(err)
	}
	e, err := p.connected()
	if err != nil {
		return nil, err
	}
	found := p.probe()
	partly, err := sandbox.Negotiate(req.Session.Isolation, p)
	if err != nil {
		return nil, err
	}
	facts := p.facts(found)
	facts.Partly = partly
	if facts.Image, err = e.image(context.Background(), p.options.Image); err != nil {
		return nil, err
	}
	return makePlan(req, p.options, facts)
}

// facts are what a plan is made from, but for the image.
func (p *Provider) facts(found *probed) Facts {
	f := Facts{Host: kernel.Look(p.setting.Native).Facts(), Program: p.setting.Program, Rootless: found.Rootless, Remapped: found.Remapped, Podman: found.Podman, Unsupervised: found.Supervised != ""}
	f.Host.LandlockABI = found.LandlockABI
	return f
}

// pin adds to a refused tag the line that names what it means now.
func (p *Provider) pin(err error) error {
	var oe *OptionError
	if !errors.As(err, &oe) || oe.Option != "image" || oe.Value == "" {
		return err
	}
	e, cerr := p.connected()
	if cerr != nil {
		return err
	}
	image, cerr := e.image(context.Background(), oe.Value)
	if cerr != nil {
		oe.Remedy = fmt.Sprintf("use the image's ID; the engine does not have %q now: %s", oe.Value, fetch(oe.Value))
		return oe
	}
	oe.Remedy = fmt.Sprintf("what it means now is: image = %q", image.Pinned)
	return oe
}

// fetch says how to come by an image. An ID alone can't be fetched.
func fetch(reference string) string {
	if hex := strings.TrimPrefix(reference, "sha256:"); len(hex) >= 12 && strings.Trim(hex, "0123456789abcdef") == "" {
		return "name one of \"docker images\"; by its ID alone none can be fetched"
	}
	return "docker pull " + reference + ", or docker build where no registry has it"
}

// image looks an image up. The engine is never asked to fetch one: what is
// fetched is the user's decision.
func (e *engine) image(ctx context.Context, reference string) (Image, error) {
	var got client.ImageInspectResult
	err := e.call(ctx, e.life, "describe the image", func(ctx context.Context) (err error) {
		got, err = e.client.ImageInspect(ctx, reference)
		return err
	})
	if cerrdefs.IsNotFound(err) {
		return Image{}, &OptionError{"image", reference, "the engine does not have this image", fetch(reference)}
	}
	if err != nil {
		return Image{}, err
	}
	i := Image{ID: got.ID, Pinned: got.ID}
	if !strings.HasPrefix(i.ID, "sha256:") { // Podman leaves it out
		i.ID = "sha256:" + i.ID
	}
	if len(got.RepoDigests) > 0 {
		i.Pinned = got.RepoDigests[0]
	} else {
		i.Pinned = i.ID
	}
	if got.Config != nil {
		i.Env = got.Config.Env
		for v := range got.Config.Volumes {
			i.Volumes = append(i.Volumes, v)
		}
		slices.Sort(i.Volumes)
	}
	return i, nil
}

// Start has the engine make the container, sees to it that it is what was
// planned, and returns once it is ready for commands. It calls onDenial, from any
// goroutine, for each refusal of the supervisor.
func (p *Provider) Start(plan sandbox.Plan, onDenial func(sandbox.Denial)) (sandbox.Guest, error) {
	n, ok := plan.(*Plan)
	if !ok {
		return nil, fmt.Errorf("BUG(bawn): %T is no plan of provider %q", plan, Name)
	}
	e, err := p.connected()
	if err != nil {
		return nil, err
	}
	g, err := p.start(context.Background(), e, n, onDenial)
	if err != nil {
		p.forget()
		return nil, err
	}
	return g, nil
}

// digest is what tickets say of the plan under which they hold.
func (p *Plan) digest() ([32]byte, error) {
	text, err := json.Marshal(p)
	return sha256.Sum256(text), err
}

// Abilities says what a session may use of Bawn's own. Its session socket is one that
// the guest is shown; that needs the supervisor, which lets it connect there. A copy's
// overlay is mounted in the container by who may: root, in whose user namespace it is.
func (p *Provider) Abilities() sandbox.Abilities {
	found := p.probe()
	return sandbox.Abilities{Socket: found.Supervised == "", Copy: os.Geteuid() == 0 && !found.Rootless && !found.Podman}
}
