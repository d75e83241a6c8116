package docker

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/client"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/devices"
	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/sandbox/inside"
	"github.com/bawn-dev/bawn/internal/sandbox/layout"
)

// A Plan is all that Start will do, as a value. Its JSON form is what --plan
// prints: what the engine is told, and what is done inside by Bawn itself.
type Plan struct {
	ImageName string                `json:"image"` // as it was configured
	Name      string                `json:"name"`
	Container *container.Config     `json:"container"`
	Host      *container.HostConfig `json:"host"`
	// Inside is what the first process does, and what the supervisor rules on, by
	// the guest's paths.
	Inside *layout.Plan `json:"inside"`

	pins   []layout.Mount // what the engine mounts for extra arguments, as it was looked at
	onHost *layout.Plan
	layout *imageLayout
	env    []string
	role   string // for broker.LabelRole
}

// Provider returns "docker".
func (*Plan) Provider() string { return Name }

// Partly lists what is enforced in part.
func (p *Plan) Partly() []bawn.Capability { return p.Inside.InPart }

// OnHost is the layout by the host's paths.
func (p *Plan) OnHost() *layout.Plan { return p.onHost }

// Places says what the guest sees of the host, by the host's paths.
func (p *Plan) Places() []bawn.Mount { return places(p.Inside.Mounts, p.layout) }

// Environ is the guest's environment.
func (p *Plan) Environ() []string { return slices.Clone(p.env) }

// An Image is what a plan needs to know of one.
type Image struct {
	ID      string   // "sha256:…"
	Pinned  string   // how a configuration names it for good
	Env     []string // of its configuration
	Volumes []string // places for which the engine would make a volume
}

// Facts are what a plan depends on besides the request and the options.
type Facts struct {
	Host    layout.Facts
	Image   Image
	Program string // bawn's
	// Rootless says that the engine is the caller's own: its user 0 is the caller.
	Rootless bool
	// Remapped says that the engine gives containers other users than the host's,
	// unless told not to.
	Remapped bool
	// Podman says that the engine is Podman, whose tmpfs have no owner but root.
	Podman bool
	// Unsupervised says that the supervisor can't serve the container.
	Unsupervised bool
	Partly       []bawn.Capability
}

// sessionPlace stands for the directory of the session's own until there is
// one.
const sessionPlace = "/{session}"

// What the session's own directory holds.
const (
	controlDir = sessionPlace + "/control"
	emptyDir   = sessionPlace + "/empty"
	emptyFile  = sessionPlace + "/empty-file"
)

// makePlan turns a request into a plan; it touches nothing.
func makePlan(req sandbox.Request, o Options, f Facts) (*Plan, error) {
	iso := req.Session.Isolation
	guest, err := o.workspace()
	if err != nil {
		return nil, err
	}
	extra, err := ParseExtra(o.ExtraArgs, o.Allowed, iso.Resources)
	if err != nil {
		return nil, err
	}
	pins, err := pinned(req, f.Host, extra.Binds)
	if err != nil {
		return nil, err
	}
	for _, d := range iso.Devices {
		if !devices.Allowed(d) {
			return nil, fmt.Errorf("device %q is not one that a session may have; want the name of a harmless one below /dev", d)
		}
	}
	hostEnv := req.Environ
	req.Environ = slices.DeleteFunc(slices.Clone(hostEnv), imagesOwn)
	req.Home = home(req, hostEnv)
	req.GitPool = "" // nothing is mounted later
	n, err := layout.Layout(req, f.Host)
	if err != nil {
		return nil, err
	}
	l := newLayout(req, f, guest)
	if err := l.extra(extra, f.Image); err != nil {
		return nil, err
	}
	in, err := l.inside(n, f)
	if err != nil {
		return nil, err
	}
	p := &Plan{ImageName: o.Image, Name: containerName(req.Session.ID + req.Zone), Inside: in, onHost: n, layout: l, role: roleSession, pins: pins}
	if in.Dir, err = l.directory(n.Dir, in.Mounts); err != nil {
		return nil, err
	}
	p.env = environment(f.Image.Env, n.Env, in.Dir, l.uid)
	in.Env, in.EnvNames = nil, variables(p.env)
	in.InPart = slices.Concat(f.Partly, extra.InPart)
	p.Container = l.container(f, extra)
	p.Host = l.hostConfig(p, o, f, iso, extra)
	return p, nil
}

// pinned looks at what binds of extra arguments show, as at any place that is
// named. Their sources become what links lead to.
func pinned(req sandbox.Request, host layout.Facts, binds []string) ([]layout.Mount, error) {
	var list []layout.Mount
	for i, bind := range binds {
		parts := strings.SplitN(bind, ":", 3)
		f, there, err := layout.Named(req, host, "--volume="+bind, parts[0])
		if err != nil {
			return nil, err
		}
		if !there {
			return nil, &FlagError{"--volume=" + bind, fmt.Sprintf("%q does not exist", parts[0]), "create it first"}
		}
		list = append(list, layout.Mount{Source: f.Real, Target: path.Clean(parts[1]), ID: f.ID})
		parts[0] = f.Real
		binds[i] = strings.Join(parts, ":")
	}
	return list, nil
}

// imagesOwn reports whether a variable describes where the human's programs
// are, which the image has elsewhere.
func imagesOwn(kv string) bool {
	name, _, _ := strings.Cut(kv, "=")
	return slices.Contains([]string{"PATH", "SHELL", "LD_LIBRARY_PATH", "MANPATH", "INFOPATH"}, name)
}

// home is the human's, by the request or the environment.
func home(req sandbox.Request, environ []string) string {
	if req.Home != "" {
		return req.Home
	}
	for _, kv := range environ {
		if v, ok := strings.CutPrefix(kv, "HOME="); ok {
			return v
		}
	}
	return ""
}

func newLayout(req sandbox.Request, f Facts, guest string) *imageLayout {
	iso := req.Session.Isolation
	l := &imageLayout{guest: guest, uid: f.Host.UID, gid: f.Host.GID, tmpMB: iso.Resources.TmpMB}
	if path.IsAbs(req.Home) {
		l.home = path.Clean(req.Home)
	}
	if ws, ok := f.Host.Lookup(iso.Workspace); ok {
		l.host = ws.Real
	}
	if f.Rootless {
		l.uid, l.gid = 0, 0
	}
	for _, m := range iso.Mounts {
		if at, ok := f.Host.Lookup(m.Path); ok && m.Access == bawn.Private {
			l.private = append(l.private, at.Real)
		}
	}
	return l
}

// inside turns native's plan for the host's root into the guest's paths.
func (l *imageLayout) inside(n *layout.Plan, f Facts) (*layout.Plan, error) {
	in := *n
	mounts, err := l.mounts(n.Mounts)
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(mounts, func(m layout.Mount) bool { return m.Target == l.guest }) {
		return nil, &layout.WorkspaceError{Path: l.host, Why: "the isolation hides it, and a container has nowhere else to work"}
	}
	in.Mounts = mounts
	in.Namespaces = []string{"mount", "pid", "ipc", "uts", "cgroup", "net"}
	in.UID = layout.Mapping{Inside: l.uid, Outside: n.UID.Outside}
	in.GID = layout.Mapping{Inside: l.gid, Outside: n.GID.Outside}
	in.Loopback = true
	in.Supervised, in.Programs, in.Holds = !f.Unsupervised, false, nil
	if f.Unsupervised {
		in.Seccomp = "guest"
	}
	in.Protected, in.Absent, in.Targets = l.allInGuest(n.Protected), l.allInGuest(n.Absent), l.allInGuest(n.Targets)
	in.Guarded, in.Owned, in.InHome, in.Denied = l.allInGuest(n.Guarded), l.allInGuest(n.Owned), l.allInGuest(n.InHome), l.denied(n.Denied)
	in.Landlock.Writable = writable(mounts)
	return &in, nil
}

// directory is where commands start: in the workspace, or in something else
// that the container shows.
func (l *imageLayout) directory(dir string, mounts []layout.Mount) (string, error) {
	at := l.inGuest(dir)
	for _, m := range mounts {
		if ofHost(m) && (at == m.Target || below(at, m.Target)) {
			return at, nil
		}
	}
	return "", fmt.Errorf("working directory %q is not in the container, which shows the workspace %q alone; change into it, or show the directory with --ro or --rw", dir, l.host)
}

// environment is the image's, and over it the session's.
func environment(image, session []string, dir string, uid int) []string {
	env := map[string]string{}
	own := []string{"PWD=" + dir, "XDG_RUNTIME_DIR=" + runtimeDir(uid)}
	for _, kv := range slices.Concat(image, session, own) {
		if name, value, ok := strings.Cut(kv, "="); ok {
			env[name] = value
		}
	}
	if env["PATH"] == "" {
		env["PATH"] = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	}
	list := make([]string, 0, len(env))
	for _, name := range slices.Sorted(maps.Keys(env)) {
		list = append(list, name+"="+env[name])
	}
	return list
}

func variables(env []string) []string {
	list := make([]string, len(env))
	for i, kv := range env {
		list[i], _, _ = strings.Cut(kv, "=")
	}
	return list
}

var notInName = regexp.MustCompile(`[^a-zA-Z0-9_.-]+`)

// containerName is by what humans find a session's container.
func containerName(session string) string {
	return "bawn-" + notInName.ReplaceAllString(session, "-")
}

// container is the engine's container.Config.
func (l *imageLayout) container(f Facts, x Extra) *container.Config {
	c := &container.Config{
		Image: f.Image.ID, User: fmt.Sprintf("%d:%d", l.uid, l.gid), Hostname: "bawn", Domainname: x.Domainname,
		Entrypoint: []string{programPlace, inside.Argument, path.Join(controlPlace, controlName)}, Cmd: []string{}, WorkingDir: "/",
		// Commands run by tickets alone: an image's own check would not.
		Healthcheck: &container.HealthConfig{Test: []string{"NONE"}},
		Env:         []string{}, Labels: map[string]string{},
	}
	if x.Hostname != "" {
		c.Hostname = x.Hostname
	}
	maps.Copy(c.Labels, x.Labels)
	return c
}

// hostConfig is the engine's container.HostConfig.
func (l *imageLayout) hostConfig(p *Plan, o Options, f Facts, iso bawn.Isolation, x Extra) *container.HostConfig {
	h := &container.HostConfig{
		NetworkMode: "none", AutoRemove: true, CapAdd: []string{}, CapDrop: []string{"ALL"}, ReadonlyRootfs: true,
		SecurityOpt: []string{"no-new-privileges"}, CgroupnsMode: container.CgroupnsModePrivate, IpcMode: container.IPCModePrivate,
		LogConfig: container.LogConfig{Type: "none"}, RestartPolicy: container.RestartPolicy{Name: container.RestartPolicyDisabled},
		ExtraHosts: x.Hosts, OomScoreAdj: x.OOMScore, GroupAdd: x.Groups, UTSMode: container.UTSMode(x.UTS), Sysctls: maps.Clone(x.Sysctls),
		Runtime: o.Runtime, Tmpfs: map[string]string{}, ShmSize: l.shm(x), MaskedPaths: masked, ReadonlyPaths: readOnly,
		Init: new(bool), Binds: x.Binds,
	}
	if f.Remapped {
		h.UsernsMode = "host"
	}
	if iso.Network == bawn.NetworkFull {
		h.NetworkMode = "bridge"
	}
	if p.Inside.Network != nil && len(p.Inside.Network.Own) > 1 {
		h.Sysctls["net.ipv6.conf.all.disable_ipv6"] = "0"
	}
	if f.Podman { // which does not look at MaskedPaths
		h.SecurityOpt = append(h.SecurityOpt, "mask="+strings.Join(masked, ":"))
	}
	l.allowed(h, x)
	h.Resources = resources(iso, o, x)
	l.bind(h, p, f)
	return h
}

// allowed sets what the user's own configuration has let pass.
func (l *imageLayout) allowed(h *container.HostConfig, x Extra) {
	h.SecurityOpt = append(h.SecurityOpt, x.Security...)
	if x.Runtime != "" {
		h.Runtime = x.Runtime
	}
	if x.IPC != "" {
		h.IpcMode = container.IpcMode(x.IPC)
	}
	if x.UserNS != "" {
		h.UsernsMode = container.UsernsMode(x.UserNS)
	}
	if x.CgroupNS != "" {
		h.CgroupnsMode = container.CgroupnsMode(x.CgroupNS)
	}
}

// shm is the size of /dev/shm in bytes.
func (l *imageLayout) shm(x Extra) int64 {
	switch {
	case x.ShmMB > 0:
		return x.ShmMB << 20
	case l.tmpMB > 0:
		return l.tmpMB << 20
	}
	return 64 << 20 // Docker's own
}

// masked and readOnly are Docker's own lists with what else tells about the
// machine, or that root alone may read.
var (
	masked = []string{
		"/proc/acpi", "/proc/asound", "/proc/interrupts", "/proc/kallsyms", "/proc/kcore", "/proc/key-users", "/proc/keys", "/proc/kpagecgroup", "/proc/kpagecount", "/proc/kpageflags",
		"/proc/latency_stats", "/proc/sched_debug", "/proc/scsi", "/proc/slabinfo", "/proc/timer_list", "/proc/timer_stats", "/proc/vmallocinfo",
		"/sys/devices/virtual/powercap", "/sys/firmware", "/sys/fs/bpf", "/sys/fs/pstore", "/sys/kernel/debug", "/sys/kernel/tracing",
	}
	readOnly = []string{"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"}
)

// resources are the limits that control groups hold. Those of each process are
// set inside.
func resources(iso bawn.Isolation, o Options, x Extra) container.Resources {
	limit := iso.Resources
	own := func(stated int64, lower int64) int64 {
		if lower > 0 {
			return lower
		}
		return stated
	}
	r := container.Resources{CPUShares: own(limit.CPUShares, x.CPUShares), CpusetCpus: x.CPUSet, CpusetMems: x.MemSet, NanoCPUs: int64(limit.CPUs * 1e9)}
	if x.CPUs > 0 {
		r.NanoCPUs = int64(x.CPUs * 1e9)
	}
	if mb := own(limit.MemoryMB, x.MemoryMB); mb > 0 {
		r.Memory, r.MemorySwap = mb<<20, (mb+max(o.MemorySwapMB, 0))<<20
	}
	if n := own(limit.PIDs, x.PIDs); n > 0 {
		r.PidsLimit = &n
	}
	for _, u := range x.Ulimits {
		r.Ulimits = append(r.Ulimits, &container.Ulimit{Name: u.Name, Soft: u.Soft, Hard: u.Hard})
	}
	for _, d := range iso.Devices {
		r.Devices = append(r.Devices, container.DeviceMapping{PathOnHost: "/dev/" + d, PathInContainer: "/dev/" + d, CgroupPermissions: "rw"})
	}
	for _, d := range x.Devices {
		from, to, _ := strings.Cut(d, ":")
		to, mode, _ := strings.Cut(to, ":")
		r.Devices = append(r.Devices, container.DeviceMapping{PathOnHost: from, PathInContainer: orElse(to, from), CgroupPermissions: orElse(mode, "rw")})
	}
	if x.GPUs != "" {
		r.DeviceRequests = []container.DeviceRequest{gpus(x.GPUs)}
	}
	return r
}

// gpus is a request for graphics processors: "all", or how many.
func gpus(v string) container.DeviceRequest {
	n, err := strconv.Atoi(v)
	if err != nil {
		n = -1
	}
	return container.DeviceRequest{Count: n, Capabilities: [][]string{{"gpu"}}}
}

func orElse(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

// bind says what is mounted, outer places first.
func (l *imageLayout) bind(h *container.HostConfig, p *Plan, f Facts) {
	at := func(source, target string, ro bool) {
		h.Mounts = append(h.Mounts, mount.Mount{Type: mount.TypeBind, Source: source, Target: target, ReadOnly: ro, BindOptions: &mount.BindOptions{Propagation: mount.PropagationRPrivate}})
	}
	for _, m := range p.Inside.Mounts {
		switch {
		case m.Kind == layout.KindDev:
		case m.Why == whyVolume:
			h.Mounts = append(h.Mounts, mount.Mount{Type: mount.TypeTmpfs, Target: m.Target, TmpfsOptions: &mount.TmpfsOptions{SizeBytes: m.SizeMB << 20, Mode: os.FileMode(m.Mode)}})
		case m.Kind == layout.KindTmpfs:
			h.Tmpfs[m.Target] = l.tmpfs(m, f)
		case m.Kind == layout.KindHideDir:
			at(emptyDir, m.Target, true)
		case m.Kind == layout.KindHide:
			at(emptyFile, m.Target, true)
		default:
			at(m.Source, m.Target, m.Kind == layout.KindBindRO || m.Kind == layout.KindCopy) // the overlay comes later
		}
	}
	at(f.Program, programPlace, true)
	at(controlDir, controlPlace, true)
}

// tmpfs are the options of a place of the session's own. Podman's belong to
// root; only the guest is in the container, and what root puts there stays
// root's. runc gives a place the mode that the image has for it, if any.
func (l *imageLayout) tmpfs(m layout.Mount, f Facts) string {
	if !f.Podman {
		return tmpfsOptions(m.SizeMB, m.Mode, l.uid, l.gid)
	}
	mode := m.Mode
	if l.uid != 0 {
		mode = 0o1777
	}
	return tmpfsOptions(m.SizeMB, mode, -1, -1) + ",notmpcopyup"
}

// create is what the engine is told for one session: dir is its own directory, and
// labels say whose it is.
func (p *Plan) create(dir string, labels map[string]string) (client.ContainerCreateOptions, error) {
	text, err := json.Marshal(p.Host)
	if err != nil {
		return client.ContainerCreateOptions{}, err
	}
	var h container.HostConfig
	if err := json.Unmarshal(text, &h); err != nil { // a copy that shares nothing
		return client.ContainerCreateOptions{}, err
	}
	for i, m := range h.Mounts {
		if rest, ok := strings.CutPrefix(m.Source, sessionPlace); ok {
			h.Mounts[i].Source = dir + rest
		}
	}
	c := *p.Container
	c.Labels = maps.Clone(c.Labels)
	maps.Copy(c.Labels, labels)
	return client.ContainerCreateOptions{Name: p.Name, Config: &c, HostConfig: &h}, nil
}

// Roles, for broker.LabelRole.
const (
	roleSession = "session" // a session's own container
	roleNetwork = "network" // the one that makes its network
	roleProbe   = "probe"   // an image that is tried
)
