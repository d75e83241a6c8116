package dockerapi

import (
	"context"
	"crypto/rand"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

func (b *Broker) createContainer(w http.ResponseWriter, r *http.Request, c *call) error {
	var req createRequest
	if err := readBody(r, &req); err != nil {
		return err
	}
	want, err := judge(c.query["name"], &req)
	if err != nil {
		return err
	}
	image, err := b.image(r.Context(), want.body.Image)
	if err != nil {
		return err
	}
	if err := want.addImage(image); err != nil {
		return err
	}
	want.body.Image = image.ID // a name could mean another one by now
	if err := want.publishAll(image); err != nil {
		return err
	}
	argv := slices.Concat(want.body.Entrypoint, want.body.Cmd, want.health())
	if err := b.check(r.Context(), toolKind, toolCall, "docker:create", slices.Concat([]string{b.toldOf(want.request.Image)}, argv)...); err != nil {
		return err
	}
	made, warnings, err := b.create(r.Context(), want)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusCreated, struct {
		ID       string `json:"Id"`
		Warnings []string
	}{made.id, warnings})
	return nil
}

// health are the words of the command that looks after the container now and
// then, where it has one of its own.
func (w *wanted) health() []string {
	if h := w.body.Healthcheck; h != nil && len(h.Test) > 0 && h.Test[0] != "NONE" {
		return append([]string{"--health-cmd"}, h.Test...)
	}
	return nil
}

// publishAll adds what the image and the request expose, where that is asked
// for.
func (w *wanted) publishAll(image *imageFacts) error {
	if !w.allPorts {
		return nil
	}
	all := append(slices.Clone(w.exposed), slices.Collect(maps.Keys(image.Config.ExposedPorts))...)
	slices.Sort(all)
	for _, p := range slices.Compact(all) {
		port, proto, err := readPort(p)
		known := slices.ContainsFunc(w.ports, func(have published) bool { return have.container == port })
		if err != nil || proto != "tcp" || known {
			continue // an image may expose what can't be published
		}
		if w.ports = append(w.ports, published{container: port}); len(w.ports) > maxPorts {
			return refuse(RuleLimit, "", "more than %d ports", maxPorts)
		}
	}
	return nil
}

// create makes the container, with everything around it.
func (b *Broker) create(ctx context.Context, w *wanted) (c *child, warnings []string, err error) {
	c = &child{wanted: w}
	defer func(c *child) {
		if err != nil {
			b.undo(c)
		}
	}(c)
	if err = b.keepWatch(); err != nil {
		return nil, nil, err
	}
	if w.name == "" {
		w.name = strings.ToLower(rand.Text()[:12])
	}
	if c.networks, err = b.join(w); err != nil {
		return nil, nil, err
	}
	if err = b.admit(ctx, c); err != nil {
		return nil, nil, err
	}
	if err = b.mount(ctx, c); err != nil {
		return nil, nil, err
	}
	if err = b.connect(ctx, w); err != nil {
		return nil, nil, err
	}
	c.nest()
	if c.mirrored() { // the broker removes it, when it has what the container wrote
		w.body.HostConfig.AutoRemove = false
	}
	b.budget.of(c).apply(&w.body.HostConfig)
	b.clampUlimits(&w.body.HostConfig)
	w.body.Labels = b.labels(w.body.Labels, RoleChild)
	if warnings, err = b.makeContainer(ctx, c); err != nil {
		return nil, nil, err
	}
	return c, warnings, nil
}

// makeContainer has the engine make it, and looks where its mounts will be. The
// engine fills new volumes with the image's files, and nothing else writes to
// them meanwhile.
func (b *Broker) makeContainer(ctx context.Context, c *child) (warnings []string, err error) {
	done, err := b.atRest(ctx, nil, c.mounts)
	if err != nil {
		return nil, err
	}
	known := true
	defer func() { done(known) }()
	// This request outlives the guest's connection: the broker must learn what the engine
	// made.
	ctx = context.WithoutCancel(ctx)
	var made struct {
		ID       string `json:"Id"`
		Warnings []string
	}
	m := message{method: http.MethodPost, path: "/containers/create", query: url.Values{"name": {b.prefix() + c.wanted.name}}, body: c.wanted.body, limit: createTime}
	if err = b.engine.do(ctx, m, &made); err != nil {
		known = notMade(err)
		return nil, err
	}
	if !hexForm().MatchString(made.ID) {
		return nil, errors.New("the engine's answer names no container")
	}
	c.id = made.ID
	if err = b.engine.look(b.life, c.id, c.wanted.targets, c.wanted.dir); err != nil {
		return nil, err
	}
	return made.Warnings, b.adopt(c)
}

// undo gives back what a container held that did not come to be.
func (b *Broker) undo(c *child) {
	b.drop(c)
	b.budget.dismiss(c)
	if c.id != "" {
		if err := destroy(b.engine, c.id); err != nil {
			b.log("remove what was made in vain: %v", err)
		}
	}
}

// adopt makes the container the session's, unless that has ended meanwhile.
func (b *Broker) adopt(c *child) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return refuse(RuleConflict, "", "the session ends")
	}
	b.children[c.id] = c
	b.writeNamesLocked()
	return nil
}

// connect says in which network the container is.
func (b *Broker) connect(ctx context.Context, w *wanted) error {
	h := &w.body.HostConfig
	if h.NetworkMode = "none"; w.isolated || b.o.Network == nil {
		if len(w.ports) > 0 && !w.isolated {
			return refuse(RuleNetwork, "", "containers of this session have no network, so no port can be published")
		}
		return nil
	}
	mode, err := b.o.Network.Mode(ctx, w.body.Image)
	if err != nil {
		return err
	}
	if of, ok := strings.CutPrefix(mode, "container:"); !ok || of == "" {
		return errors.New("BUG(bawn): a network is that of a container")
	}
	h.NetworkMode = mode
	return nil
}

// clampUlimits applies those of the session to each process.
func (b *Broker) clampUlimits(h *hostBody) {
	r := b.o.Session.Isolation.Resources
	for _, l := range []ulimit{{"nofile", r.OpenFiles, r.OpenFiles}, {"fsize", r.FileSizeMB << 20, r.FileSizeMB << 20}} {
		if l.Hard <= 0 {
			continue
		}
		i := slices.IndexFunc(h.Ulimits, func(u ulimit) bool { return u.Name == l.Name })
		switch {
		case i < 0:
			h.Ulimits = append(slices.Clone(h.Ulimits), l)
		case h.Ulimits[i].Hard < 0 || h.Ulimits[i].Hard > l.Hard:
			h.Ulimits = slices.Clone(h.Ulimits)
			h.Ulimits[i] = ulimit{l.Name, min(max(h.Ulimits[i].Soft, 1), l.Hard), l.Hard}
		}
	}
}

// mount turns a requested mount into the engine's form.
func (b *Broker) mount(ctx context.Context, c *child) error {
	w := c.wanted
	for i := range w.mounts {
		m := &w.mounts[i]
		body := mountBody{Type: m.Type, Target: m.Target, ReadOnly: m.ReadOnly}
		shown := shownMount{Type: m.Type, Destination: m.Target, RW: !m.ReadOnly}
		var err error
		switch m.Type {
		case typeBind:
			shown.Source, shown.Propagation = m.Source, "rprivate"
			body.BindOptions = &bindBody{Propagation: "rprivate", NonRecursive: true}
			if m.ReadOnly {
				body.Source, err = b.bind(ctx, c, m)
			} else {
				err = b.mirrorBind(c, m, &body)
			}
		case typeVolume:
			shown.Name, shown.Driver = m.Source, "local"
			body.VolumeOptions = &volumeBody{NoCopy: m.VolumeOptions.NoCopy, Labels: b.labels(m.VolumeOptions.Labels, RoleChild)}
			if m.Source != "" {
				body.Source, err = b.volume(ctx, m.Source, m.VolumeOptions.Labels)
			}
		case typeTmpfs:
			body.TmpfsOptions = &tmpfsBody{SizeBytes: m.TmpfsOptions.SizeBytes, Mode: m.TmpfsOptions.Mode & 0o1777}
		}
		if err != nil {
			return err
		}
		w.body.HostConfig.Mounts = append(w.body.HostConfig.Mounts, body)
		c.mounts = append(c.mounts, shown)
	}
	if source := b.names.source(); source != "" && !w.isolated {
		w.body.HostConfig.Mounts = append(w.body.HostConfig.Mounts, mountBody{
			Type: typeBind, Source: source, Target: hostsFile, ReadOnly: true, BindOptions: &bindBody{Propagation: "rprivate", NonRecursive: true},
		})
	}
	return nil
}

// bind copies what is mounted, and returns where the engine finds the copy.
func (b *Broker) bind(ctx context.Context, c *child, m *mountRequest) (string, error) {
	if b.o.Dir == "" {
		return "", refuse(RuleMount, "copy it in (docker cp)", "nothing of the workspace can be mounted in this session")
	}
	leave, err := b.store.enter(ctx)
	if err != nil {
		return "", err
	}
	defer leave()
	if c.place == "" {
		place, err := os.MkdirTemp(b.o.Dir, "mounts-")
		if err != nil {
			return "", err
		}
		c.place = place
	}
	to := filepath.Join(c.place, strconv.Itoa(len(c.mounts)))
	return to, b.o.View.copyIn(m.Source, to, func(more load) error { return b.store.take(&c.copied, more) })
}
