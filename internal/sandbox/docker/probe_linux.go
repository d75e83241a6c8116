package docker

import (
	"archive/tar"
	"bytes"
	"context"
	"debug/elf"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/moby/moby/api/types/system"
	"github.com/moby/moby/client"
	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/atomicfile"
	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/sandbox/inside"
	"github.com/bawn-dev/bawn/internal/sandbox/maker"
)

// probed is what was found out about an engine by having it make a container.
// Each text says why something can't be had; "" that it can.
type probed struct {
	Failed, Remedy string // nothing can be had
	Rootless       bool   // the engine's user 0 is ours
	Remapped       bool   // containers have other users than the host
	Podman         bool   // the engine is Podman
	LandlockABI    int    // that works in a container
	Supervised     string
	Network        string
	Memory         string
	Swap           string // beside memory
	PIDs           string
	CPU            string
}

// probe returns what the engine can do, from memory, from the cache, or by
// trying.
func (p *Provider) probe() *probed {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.found != nil {
		return p.found
	}
	if err := checkHost(p.host); err != nil {
		p.found = failed(err)
		return p.found
	}
	if p.engine == nil {
		e, err := connect(p.host)
		if err != nil {
			p.found = failed(err)
			return p.found
		}
		p.engine = e
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*p.engine.slow)
	defer cancel()
	who, err := p.engine.identity(ctx)
	if err != nil {
		p.found = failed(err)
		return p.found
	}
	key, err := p.key(who)
	if err != nil {
		p.found = failed(err)
		return p.found
	}
	if f := p.cached(key); f != nil {
		p.found = f
		return f
	}
	p.found = p.try(ctx)
	p.keep(key)
	return p.found
}

// failed is what an error leaves.
func failed(err error) *probed {
	f := &probed{Failed: err.Error()}
	var oe *OptionError
	var ee *EngineError
	if errors.As(err, &oe) {
		f.Failed, f.Remedy = fmt.Sprintf("%s = %q: %s", oe.Option, oe.Value, oe.Why), oe.Remedy
	}
	if errors.As(err, &ee) {
		f.Failed, f.Remedy = fmt.Sprintf("the engine at %q can't be asked: %v", ee.Host, ee.Err), ee.Remedy
		if !errors.Is(ee, errAbsent) && !errors.Is(ee, fs.ErrPermission) {
			f.Failed = fmt.Sprintf("the engine did not %s: %v", ee.What, ee.Err)
		}
	}
	return f
}

// version asks who the engine is.
func (e *engine) version(ctx context.Context) (v client.ServerVersionResult, err error) {
	err = e.call(ctx, e.life, "say what it is", func(ctx context.Context) (err error) {
		v, err = e.client.ServerVersion(ctx, client.ServerVersionOptions{})
		return err
	})
	return v, err
}

func isPodman(v client.ServerVersionResult) bool {
	return slices.ContainsFunc(v.Components, func(c system.ComponentVersion) bool { return strings.Contains(c.Name, "Podman") })
}

// key is what an outcome was found under: this boot, this engine, this
// program, this user.
func (p *Provider) key(engine string) (string, error) {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", err
	}
	var socket, program syscall.Stat_t
	err = errors.Join(syscall.Stat(strings.TrimPrefix(p.host, "unix://"), &socket), syscall.Stat(p.setting.Program, &program))
	return fmt.Sprintf("%s|%s|%d.%d.%v|%d.%d.%v|%d|%s", strings.TrimSpace(string(boot)), engine, socket.Dev, socket.Ino, socket.Ctim, program.Dev, program.Ino, program.Mtim, os.Geteuid(), p.options.runtime()), err
}

// A record is the cache's content.
type record struct {
	Key   string
	Found probed
}

// maxRecord bounds a cache that is read.
const maxRecord = 64 << 10

func (p *Provider) cached(key string) *probed {
	if p.setting.Cache == "" {
		return nil
	}
	text, err := atomicfile.Read(p.setting.Cache, maxRecord)
	var r record
	if err != nil || json.Unmarshal(text, &r) != nil || r.Key != key {
		return nil
	}
	return &r.Found
}

// keep writes what was found, unless it is a failure, which may be mended.
func (p *Provider) keep(key string) {
	text, err := json.Marshal(record{key, *p.found})
	if p.setting.Cache == "" || p.found.Failed != "" || err != nil || os.MkdirAll(filepath.Dir(p.setting.Cache), 0o700) != nil {
		return
	}
	_ = atomicfile.Write(p.setting.Cache, text, 0o600) // without, the next one tries again
}

// forget drops an outcome that may have proved wrong.
func (p *Provider) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.found = nil
	if p.setting.Cache != "" {
		_ = os.Remove(p.setting.Cache)
	}
}

// try makes a container of everything that a session may have.
func (p *Provider) try(ctx context.Context) *probed {
	v, err := p.engine.version(ctx)
	if err != nil {
		return failed(err)
	}
	podman := isPodman(v)
	i, err := p.engine.info(ctx)
	if err != nil {
		return failed(err)
	}
	f, err := knownBy(i)
	if err == nil {
		err = checkRuntime(p.options.runtime(), i)
	}
	if err != nil {
		return failed(err)
	}
	if err := static(p.setting.Program); err != nil {
		return failed(err)
	}
	image, err := p.trialImage(ctx)
	if err != nil {
		return failed(err)
	}
	defer image.remove()
	f.LandlockABI, f.Podman = landlockABI(), podman
	if err := p.trial(ctx, f, image.ID, true); err != nil {
		f.Network = err.Error()
		if err := p.trial(ctx, f, image.ID, false); err != nil {
			return failed(err)
		}
	}
	return f
}

// static requires a program that needs no other file: an image has its own
// libraries, or none.
func static(program string) error {
	f, err := elf.Open(program)
	if err != nil {
		return fmt.Errorf("bawn, which runs in the container, can't be read: %w", err)
	}
	defer f.Close()
	if slices.ContainsFunc(f.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP }) {
		return fmt.Errorf("%q needs this machine's libraries, which a container does not have; build it with CGO_ENABLED=0", program)
	}
	return nil
}

// knownBy takes what the engine says of itself, and no test can tell.
func knownBy(i system.Info) (*probed, error) {
	f := &probed{}
	if i.OSType != "linux" {
		return nil, fmt.Errorf("the engine runs %q containers; want linux", i.OSType)
	}
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return nil, err
	}
	if k := unix.ByteSliceToString(u.Release[:]); i.KernelVersion != "" && i.KernelVersion != k {
		return nil, fmt.Errorf("the engine's kernel is %s, and this machine's %s: it is another machine, or a virtual one; use one of this machine, or run bawn there", i.KernelVersion, k)
	}
	for _, o := range i.SecurityOptions {
		f.Rootless = f.Rootless || strings.Contains(o, "name=rootless")
		f.Remapped = f.Remapped || strings.Contains(o, "name=userns")
	}
	for what, missing := range map[*string]bool{&f.Memory: !i.MemoryLimit, &f.PIDs: !i.PidsLimit, &f.CPU: !i.CPUCfsQuota || !i.CPUShares} {
		if missing {
			*what = "the engine has no control group for it"
		}
	}
	if !i.SwapLimit {
		f.Swap = "the engine can't limit swap"
	}
	return f, nil
}

// trialTime is how long the trial's only command may take.
const trialTime = 5 * time.Second

// trial makes one container and looks at it from outside.
func (p *Provider) trial(ctx context.Context, f *probed, image string, network bool) (err error) {
	m, err := maker.Self()
	if err != nil {
		return err
	}
	ws, err := makePlace(p.setting.Runtime, m) // any directory of ours will do for a workspace
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ws.remove()) }()
	plan, err := makePlan(trialRequest(ws.at(controlEntry), network), Options{Image: image, Runtime: p.options.runtime()}, p.trialFacts(f, image))
	if err != nil {
		return err
	}
	plan.role = roleProbe
	g, err := p.start(ctx, p.engine, plan, func(sandbox.Denial) {})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	g.limited(f)
	f.Supervised = g.supervised(f)
	return nil
}

func (p *Provider) trialFacts(f *probed, image string) Facts {
	facts := p.facts(f)
	facts.Image = Image{ID: image}
	return facts
}

// The trial's limits, which no engine has by itself.
const (
	trialMemoryMB = 64
	trialPIDs     = 61
	trialCPUs     = 0.75
)

func trialRequest(workspace string, network bool) sandbox.Request {
	iso := bawn.Isolation{
		Workspace: workspace, Mounts: []bawn.Mount{{Path: workspace, Access: bawn.ReadWrite, Why: "trial"}}, Protect: true,
		Resources: bawn.Resources{MemoryMB: trialMemoryMB, PIDs: trialPIDs, CPUs: trialCPUs, TmpMB: 1},
	}
	if network {
		iso.Network = bawn.NetworkAllowlist
	}
	return sandbox.Request{Session: bawn.Session{ID: "probe-" + filepath.Base(filepath.Dir(workspace)), Isolation: iso}, Argv: []string{programPlace}, Dir: workspace, Relay: network}
}

// limited compares the limits in force with those that were asked for.
func (g *guest) limited(f *probed) {
	if g.groups == nil {
		f.Memory, f.PIDs, f.CPU = unseen, unseen, unseen
		return
	}
	l := g.groups.Limits()
	for what, ok := range map[*string]bool{&f.Memory: l.MemoryMB == trialMemoryMB, &f.PIDs: l.PIDs == trialPIDs, &f.CPU: l.CPUs == trialCPUs} {
		if !ok && *what == "" {
			*what = "the engine was told, and the control group says otherwise"
		}
	}
}

const unseen = "the container's control group can't be read"

// supervised reports why the supervisor can't serve a guest, or "". It has
// Bawn itself open /dev/null for writing, which is a call that is held, and then
// connect to a socket that is not there.
func (g *guest) supervised(f *probed) string {
	if !g.plan.Inside.Supervised {
		return f.Supervised
	}
	r, w, err := os.Pipe()
	if err != nil {
		return err.Error()
	}
	defer r.Close()
	const nowhere = "/run/bawn/nothing-there"
	proc, err := g.Exec(sandbox.Command{Argv: []string{programPlace, inside.Argument, nowhere}, Stdio: [3]*os.File{nil, nil, w}})
	w.Close()
	if err != nil {
		return err.Error()
	}
	if err := r.SetReadDeadline(time.Now().Add(trialTime)); err != nil {
		return err.Error()
	}
	said, err := io.ReadAll(r)
	_ = proc.Signal(syscall.SIGKILL)
	if err == nil && bytes.Contains(said, []byte("connect to")) && bytes.Contains(said, []byte(nowhere)) {
		return ""
	}
	return fmt.Sprintf("the supervisor may not look at a container's processes (is kernel.yama.ptrace_scope above 0?): %.200q, %v", said, err)
}

// A trialImage is one to try with: the user's, or an empty one that is removed
// again.
type trialImage struct {
	Image
	remove func()
}

func (p *Provider) trialImage(ctx context.Context) (trialImage, error) {
	if p.options.Image != "" {
		if i, err := p.engine.image(ctx, p.options.Image); err == nil {
			return trialImage{i, func() {}}, nil
		}
	}
	id, err := p.engine.emptyImage(ctx)
	return trialImage{Image{ID: id}, func() {
		_ = p.engine.call(context.WithoutCancel(ctx), p.engine.life, "remove the probe's image", func(ctx context.Context) error {
			_, err := p.engine.client.ImageRemove(ctx, id, client.ImageRemoveOptions{Force: true})
			return err
		})
	}}, err
}

// emptyImage makes an image with nothing in it but a place to mount at: the
// container's program is mounted.
func (e *engine) emptyImage(ctx context.Context) (id string, err error) {
	m, err := maker.Self()
	if err != nil {
		return "", err
	}
	var layer bytes.Buffer
	w := tar.NewWriter(&layer)
	err = errors.Join(w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: "run/", Mode: 0o755}), w.Close())
	if err != nil {
		return "", err
	}
	var changes []string
	for name, value := range m.Labels(nil, "probe", roleProbe) {
		changes = append(changes, fmt.Sprintf("LABEL %s=%s", name, value))
	}
	err = e.call(ctx, e.slow, "make an empty image for a probe", func(ctx context.Context) error {
		r, err := e.client.ImageImport(ctx, client.ImageImportSource{Source: &layer, SourceName: "-"}, "", client.ImageImportOptions{Changes: changes})
		if err != nil {
			return err
		}
		defer r.Close()
		id, err = imported(r)
		return err
	})
	return id, err
}

// imported reads the ID from what an import says.
func imported(r io.Reader) (string, error) {
	var last struct{ Status, Error string }
	for d := json.NewDecoder(io.LimitReader(r, maxRecord)); d.More(); {
		if err := d.Decode(&last); err != nil {
			return "", err
		}
	}
	if last.Error != "" || !digest.MatchString(last.Status) {
		return "", fmt.Errorf("import: %q %q; want an ID", last.Status, last.Error)
	}
	return last.Status, nil
}
