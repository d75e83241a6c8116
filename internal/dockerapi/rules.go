package dockerapi

import (
	"maps"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
)

// A wanted is a container as it will be asked of the engine, but for what only
// this machine and this moment can tell: mounts, limits, the network.
type wanted struct {
	name     string // as the guest calls it
	hostname string
	body     createBody
	mounts   []mountRequest // in the form of Mounts, whichever form they had
	targets  []string       // of all mounts, clean; those of the image's volumes when they are known
	dir      string         // that the process starts in; "" for the root
	ports    []published
	allPorts bool
	exposed  []string
	networks map[string][]string // names or IDs of the session's networks, and aliases there
	isolated bool                // without any network
	share    share               // asked for
	step     bool                // of a build: no other request finds it; guarded by Broker.mu
	request  createRequest       // what inspect shows again
}

// published is a port of a container that the guest reaches at its loopback.
type published struct {
	container uint16
	guest     uint16 // 0: any
}

// capabilities are what a container's root keeps: what images need to give
// files to their own users and to become these. None reaches the network's
// rules, devices or other processes.
var capabilities = []string{"CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "NET_BIND_SERVICE", "SETGID", "SETUID"}

// Bounds of what one container may state.
const (
	maxWords  = 4096      // of argv and environment
	maxText   = 128 << 10 // bytes of all of them
	maxLabels = 256
	maxMounts = 64
	maxPorts  = 64
	maxLists  = 64   // of each list of short words
	maxPath   = 4095 // bytes: what Linux takes (PATH_MAX, without the zero)
	maxDeep   = 64   // directories on the way to a mount or to where a process starts
)

var (
	containerName = form(`^[a-zA-Z0-9][a-zA-Z0-9_.-]{0,62}$`)
	hostLabel     = form(`^[a-zA-Z0-9_]([a-zA-Z0-9_.-]{0,62}[a-zA-Z0-9_])?$`)
	userForm      = form(`^[a-zA-Z0-9_][a-zA-Z0-9_.-]{0,31}(:[a-zA-Z0-9_][a-zA-Z0-9_.-]{0,31})?$`)
	signalForm    = form(`^(SIG)?[A-Z0-9+]{1,12}$`)
	variableForm  = form(`^[A-Za-z_][A-Za-z0-9_]*$`)
	capForm       = form(`^[A-Za-z_]{1,32}$`)
	imageForm     = form(`^[a-z0-9][a-zA-Z0-9_.:/-]{0,254}(@sha256:[0-9a-f]{64})?$`)
)

// imageName reports whether a name is one of an image. It becomes a part of the
// path of a request: no segment of it leads elsewhere.
func imageName(name string) bool {
	dots := func(s string) bool { return s == "" || s == "." || s == ".." }
	return imageForm().MatchString(name) && !slices.ContainsFunc(strings.Split(name, "/"), dots)
}

// judge turns a request into what may be asked of the engine.
func judge(name string, r *createRequest) (*wanted, error) {
	w := &wanted{name: name, request: *r, body: createBody{common: r.common}, networks: map[string][]string{}}
	for _, check := range []func(*createRequest) error{
		w.checkWords, w.checkHost, w.checkProcess, w.checkLog, w.checkNames, w.setNetworks, w.setPorts, w.setMounts, w.setLimits,
	} {
		if err := check(r); err != nil {
			return nil, err
		}
	}
	h := &w.body.HostConfig
	h.AutoRemove, h.Init, h.ReadonlyRootfs = r.HostConfig.AutoRemove, r.HostConfig.Init, r.HostConfig.ReadonlyRootfs
	h.CapDrop, h.CapAdd = []string{"ALL"}, keptCapabilities(r.HostConfig.CapDrop)
	h.SecurityOpt, h.IpcMode, h.CgroupnsMode = []string{"no-new-privileges"}, "private", "private"
	h.RestartPolicy.Name = "no"
	return w, nil
}

// keptCapabilities are those that the guest does not drop itself.
func keptCapabilities(dropped []string) []string {
	kept := slices.Clone(capabilities)
	return slices.DeleteFunc(kept, func(c string) bool {
		return slices.ContainsFunc(dropped, func(d string) bool {
			d = strings.TrimPrefix(strings.ToUpper(d), "CAP_")
			return d == c || d == "ALL"
		})
	})
}

func bad(format string, args ...any) *Refusal {
	return refuse(RuleField, "", format, args...).status(http.StatusBadRequest)
}

// checkWords bounds texts, and refuses those that can't be part of argv.
func (w *wanted) checkWords(r *createRequest) error {
	all := slices.Concat(r.Env, r.Cmd, r.Entrypoint, r.Shell)
	if r.Healthcheck != nil {
		all = append(all, r.Healthcheck.Test...)
	}
	return checkArgs(all)
}

func checkArgs(all []string) error {
	total := 0
	for _, s := range all {
		total += len(s)
		if strings.ContainsRune(s, 0) {
			return bad("a word holds a zero byte")
		}
	}
	if len(all) > maxWords || total > maxText {
		return refuse(RuleLimit, "", "more than %d words, or %d bytes of them", maxWords, maxText)
	}
	return nil
}

// checkHost refuses what would share something with the host or with others.
func (w *wanted) checkHost(r *createRequest) error {
	h := &r.HostConfig
	if len(h.CapDrop) > maxLists || len(h.SecurityOpt) > maxLists {
		return refuse(RuleLimit, "", "more than %d of HostConfig.CapDrop or SecurityOpt", maxLists)
	}
	for _, c := range h.CapDrop {
		if !capForm().MatchString(c) {
			return bad("%.50q is no capability", c)
		}
	}
	for _, f := range []struct {
		name, value string
		known       []string
	}{
		{"IpcMode", h.IpcMode, []string{"", "private", "none"}},
		{"CgroupnsMode", h.CgroupnsMode, []string{"", "private"}},
		{"Isolation", h.Isolation, []string{"", "default"}},
	} {
		if !oneOf(f.value, f.known...) {
			return refuse(RuleHost, "leave it out", "HostConfig.%s can't be %.50q: a container of a guest shares nothing with the host or with others", f.name, f.value)
		}
	}
	for _, o := range h.SecurityOpt {
		if !oneOf(o, "no-new-privileges", "no-new-privileges:true", "no-new-privileges=true") {
			return refuse(RuleHost, "leave it out", "HostConfig.SecurityOpt can't be %.50q: it could only loosen what Bawn sets", o)
		}
	}
	if name := h.RestartPolicy.Name; !oneOf(name, "", "no") {
		return refuse(RuleHost, `use "no" and start it again yourself`, "a container with the restart policy %.50q could outlive the session", name)
	}
	if h.OomScoreAdj < 0 {
		return refuse(RuleHost, "leave it out", "HostConfig.OomScoreAdj can't be negative: others would be killed first")
	}
	w.body.HostConfig.OomScoreAdj = h.OomScoreAdj
	return nil
}

// checkProcess checks what is said of the process itself.
func (w *wanted) checkProcess(r *createRequest) error {
	switch {
	case !imageName(r.Image):
		return bad("%.100q is no name of an image", r.Image)
	case r.User != "" && !userForm().MatchString(r.User):
		return bad("%.50q is no user; write NAME, or UID:GID", r.User)
	case r.StopSignal != "" && !signalForm().MatchString(r.StopSignal):
		return bad("%.50q is no signal", r.StopSignal)
	}
	return checkDir(r.WorkingDir)
}

// checkDir checks the directory that a process starts in, "" for the image's.
func checkDir(dir string) error {
	switch {
	case dir != "" && !path.IsAbs(dir):
		return bad("the directory %.100q is not absolute", dir)
	case len(dir) > maxPath || strings.ContainsRune(dir, 0):
		return bad("the directory %.100q can't be one: it has more than %d bytes, or a zero byte", dir, maxPath)
	case tooDeep(path.Clean(dir)):
		return bad("the directory %.100q is more than %d directories deep", dir, maxDeep)
	case slices.Contains(strings.Split(dir, "/"), ".."):
		return bad(`the directory %.100q has ".." in it`, dir)
	}
	for _, k := range kernelPlaces {
		if dir != "" && within(path.Clean(dir), k) {
			return refuse(RuleHost, "start somewhere else", "no process starts in %.100q: what is there may lead out of the container", dir)
		}
	}
	return nil
}

// checkLog lets the engine keep logs as files, of bounded size.
func (w *wanted) checkLog(r *createRequest) error {
	l := r.HostConfig.LogConfig
	if !oneOf(l.Type, "", "json-file", "local", "none") || len(l.Config) > 0 {
		return refuse(RuleHost, `use "json-file" without options`, "the log driver %.50q, or its options, could write or send somewhere else", l.Type)
	}
	w.body.HostConfig.LogConfig = logBody{Type: "json-file", Config: map[string]string{"max-size": "16m", "max-file": "2"}}
	if l.Type == "none" {
		w.body.HostConfig.LogConfig = logBody{Type: "none"}
	}
	return nil
}

// checkNames keeps Bawn's own labels Bawn's, and a container's names clean.
func (w *wanted) checkNames(r *createRequest) error {
	if err := checkLabels(r.Labels); err != nil {
		return err
	}
	if w.name != "" && !containerName().MatchString(w.name) {
		return bad("%.100q is no name of a container", w.name)
	}
	if r.Hostname != "" && !hostLabel().MatchString(r.Hostname) || r.Domainname != "" && !hostLabel().MatchString(r.Domainname) {
		return bad("%.100q is no name of a host", r.Hostname+"."+r.Domainname)
	}
	w.hostname = r.Hostname
	return nil
}

// keptLabels begin the labels that no guest may set: Bawn's, and those by which
// Podman changes what a container may do.
var keptLabels = []string{labelPrefix, "io.podman.", "io.containers.", "run.oci."}

func checkLabels(labels map[string]string) error {
	total := 0
	for name, value := range labels {
		total += len(name) + len(value)
		for _, p := range keptLabels {
			if strings.HasPrefix(strings.ToLower(name), p) {
				return refuse(RuleField, "use another", "labels that begin with %q are Bawn's own, or some engine obeys them", p)
			}
		}
	}
	if len(labels) > maxLabels || total > maxText {
		return refuse(RuleLimit, "", "more than %d labels, or %d bytes of them", maxLabels, maxText)
	}
	return nil
}

// setNetworks takes the names of networks; whether they are the session's is
// known later.
func (w *wanted) setNetworks(r *createRequest) error {
	mode := r.HostConfig.NetworkMode
	switch {
	case mode == "host" || strings.HasPrefix(mode, "ns:") || strings.Contains(mode, "/"):
		return refuse(RuleNetwork, "leave it out: containers are in the session's own network", "the network mode %.50q is the host's network, or one of somebody else", mode)
	case mode == "none":
		w.isolated = true
		return nil
	case oneOf(mode, "", "default"):
		mode = defaultNetwork
	}
	if of, ok := strings.CutPrefix(mode, "container:"); ok {
		w.networks[mode] = nil
		return checkRef(of)
	}
	if err := checkRef(mode); err != nil {
		return err
	}
	w.networks[mode] = nil
	if len(r.NetworkingConfig.EndpointsConfig) > maxNetworks {
		return refuse(RuleLimit, "", "more than %d networks", maxNetworks)
	}
	for name, e := range r.NetworkingConfig.EndpointsConfig {
		if name == "default" {
			name = defaultNetwork
		}
		if e == nil {
			e = &endpointRequest{}
		}
		if len(e.NetworkID) > 64 {
			return bad("%.100q is no ID", e.NetworkID)
		}
		if err := checkAliases(name, e.Aliases); err != nil {
			return err
		}
		w.networks[name] = e.Aliases
	}
	return nil
}

func checkRef(name string) error {
	if !containerName().MatchString(name) && !hexForm().MatchString(name) {
		return bad("%.100q is no name", name)
	}
	return nil
}

func checkAliases(network string, aliases []string) error {
	if err := checkRef(network); err != nil {
		return err
	}
	if len(aliases) > maxPorts {
		return refuse(RuleLimit, "", "more than %d aliases", maxPorts)
	}
	for _, a := range aliases {
		if !hostLabel().MatchString(a) {
			return bad("%.100q is no name of a host", a)
		}
	}
	return nil
}

// setPorts reads ports to be published.
func (w *wanted) setPorts(r *createRequest) error {
	for p := range r.ExposedPorts {
		if _, proto, err := readPort(p); err != nil || !oneOf(proto, "tcp", "udp") {
			return bad("%.50q is no port", p)
		}
	}
	w.exposed, w.allPorts = slices.Sorted(maps.Keys(r.ExposedPorts)), r.HostConfig.PublishAllPorts
	for _, p := range slices.Sorted(maps.Keys(r.HostConfig.PortBindings)) {
		port, proto, err := readPort(p)
		if err != nil {
			return err
		}
		if proto != "tcp" {
			return refuse(RuleNetwork, "publish a TCP port", "%.50q can't be published: only TCP is", p)
		}
		list := r.HostConfig.PortBindings[p]
		if len(list) == 0 {
			list = []portBinding{{}}
		}
		for _, b := range list {
			guest, err := guestPort(b)
			if err != nil {
				return err
			}
			w.ports = append(w.ports, published{port, guest})
		}
	}
	if len(w.ports) > maxPorts || len(w.exposed) > maxPorts*4 {
		return refuse(RuleLimit, "", "more than %d ports", maxPorts)
	}
	return nil
}

// readPort reads "80/tcp" or "80".
func readPort(text string) (port uint16, proto string, err error) {
	number, proto, ok := strings.Cut(text, "/")
	if !ok {
		proto = "tcp"
	}
	n, err := strconv.ParseUint(number, 10, 16)
	if err != nil || n == 0 || len(number) > 5 {
		return 0, "", bad("%.50q is no port; write 80/tcp", text)
	}
	return uint16(n), proto, nil
}

// guestPort is the port of the guest's loopback that a binding names. The
// guest's loopback is all there is, so "every address" is that as well.
func guestPort(b portBinding) (uint16, error) {
	if !oneOf(b.HostIP, "", "0.0.0.0", "127.0.0.1", "localhost", "::", "::1") {
		return 0, refuse(RuleNetwork, "leave the address out", "ports are published at the guest's own loopback, not at %.50q", b.HostIP)
	}
	if b.HostPort == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(b.HostPort, 10, 16)
	if err != nil || len(b.HostPort) > 5 {
		return 0, bad("%.50q is no port; ranges are not served", b.HostPort)
	}
	return uint16(n), nil
}
