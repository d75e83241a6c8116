package dockerapi

import (
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Types of mounts.
const (
	typeBind   = "bind"
	typeVolume = "volume"
	typeTmpfs  = "tmpfs"
)

// setMounts brings Binds, Mounts, Volumes and Tmpfs into one form.
func (w *wanted) setMounts(r *createRequest) error {
	for _, b := range r.HostConfig.Binds {
		m, err := readBind(b)
		if err != nil {
			return err
		}
		w.mounts = append(w.mounts, m)
	}
	w.mounts = append(w.mounts, r.HostConfig.Mounts...)
	if len(w.mounts)+len(r.Volumes)+len(r.HostConfig.Tmpfs) > maxMounts {
		return refuse(RuleLimit, "", "more than %d mounts", maxMounts)
	}
	for i := range w.mounts {
		m := &w.mounts[i]
		if err := checkMount(m); err != nil {
			return err
		}
		m.Target = path.Clean(m.Target)
		if err := w.target(m.Target); err != nil {
			return err
		}
	}
	for target := range r.Volumes {
		if err := checkTarget(target); err != nil {
			return err
		}
		// Where something else is mounted at the same place, engines take that.
		if clean := path.Clean(target); !slices.Contains(w.targets, clean) {
			w.targets = append(w.targets, clean)
		}
	}
	if err := w.setTmpfs(r.HostConfig.Tmpfs); err != nil {
		return err
	}
	return w.checkNested()
}

// target takes a place for one mount.
func (w *wanted) target(clean string) error {
	if slices.Contains(w.targets, clean) {
		return refuse(RuleMount, "", "two mounts at %.200q", clean)
	}
	w.targets = append(w.targets, clean)
	return nil
}

// maxOptions bounds the options of a tmpfs, in bytes.
const maxOptions = 256

// setTmpfs passes on the options that only narrow.
func (w *wanted) setTmpfs(list map[string]string) error {
	for _, target := range slices.Sorted(maps.Keys(list)) {
		if err := checkTarget(target); err != nil {
			return err
		}
		if len(list[target]) > maxOptions {
			return refuse(RuleMount, "", "the options of the tmpfs at %.200q have more than %d bytes", target, maxOptions)
		}
		for o := range strings.SplitSeq(list[target], ",") {
			name, value, _ := strings.Cut(o, "=")
			number := value != "" && strings.Trim(value, "0123456789kmgKMG%") == ""
			if !oneOf(o, "", "rw", "ro", "noexec", "nosuid", "nodev") && (!oneOf(name, "size", "mode", "uid", "gid") || !number) {
				return refuse(RuleMount, "use rw, ro, noexec, size=, mode=, uid= and gid=", "the option %.50q of a tmpfs", o)
			}
		}
		if err := w.target(path.Clean(target)); err != nil {
			return err
		}
		if w.body.HostConfig.Tmpfs == nil {
			w.body.HostConfig.Tmpfs = map[string]string{}
		}
		w.body.HostConfig.Tmpfs[target] = list[target]
	}
	return nil
}

// readBind reads SOURCE:TARGET[:OPTIONS].
func readBind(text string) (m mountRequest, err error) {
	parts := strings.Split(text, ":")
	if len(parts) < 2 || len(parts) > 3 || parts[0] == "" {
		return m, refuse(RuleMount, "write SOURCE:TARGET, or SOURCE:TARGET:ro", "the mount %.200q can't be read", text)
	}
	m.Type, m.Source, m.Target = typeVolume, parts[0], parts[1]
	if strings.HasPrefix(m.Source, "/") {
		m.Type = typeBind
	}
	if len(parts) == 2 {
		return m, nil
	}
	for o := range strings.SplitSeq(parts[2], ",") {
		switch o {
		case "ro":
			m.ReadOnly = true
		case "nocopy":
			m.VolumeOptions.NoCopy = true
		case "rw", "cached", "delegated", "consistent", "rprivate", "private", "z", "Z": // the engine labels what it mounts here itself
		default:
			return m, refuse(RuleMount, "use ro or rw", "the option %.50q of the mount at %.200q", o, m.Target)
		}
	}
	return m, nil
}

// checkMount judges what can be judged without looking.
func checkMount(m *mountRequest) error {
	if err := checkTarget(m.Target); err != nil {
		return err
	}
	if !oneOf(m.Consistency, "", "default", "consistent", "cached", "delegated") {
		return refuse(RuleMount, "leave it out", "the consistency %.50q", m.Consistency)
	}
	switch m.Type {
	case typeBind:
		return checkBind(m)
	case typeVolume:
		if !oneOf(m.VolumeOptions.DriverConfig.Name, "", "local") {
			return refuse(RuleMount, "leave it out", "the volume driver %.50q can mount anything", m.VolumeOptions.DriverConfig.Name)
		}
		if m.Source != "" && !containerName().MatchString(m.Source) {
			return refuse(RuleMount, "name a volume, or an absolute path of the workspace", "%.200q is no name of a volume", m.Source)
		}
		return checkLabels(m.VolumeOptions.Labels)
	case typeTmpfs:
		if m.Source != "" || m.TmpfsOptions.SizeBytes < 0 {
			return refuse(RuleMount, "", "a tmpfs has no source, and no negative size")
		}
		return nil
	}
	return refuse(RuleMount, "use bind, volume or tmpfs", "the type of mount %.50q", m.Type)
}

// tooDeep reports whether an absolute place has too many directories on its way: the
// engine is asked about each.
func tooDeep(clean string) bool { return strings.Count(clean, "/") > maxDeep }

func tooLong(name string) error {
	return refuse(RuleMount, "", "%.200q has more than %d bytes", name, maxPath)
}

func checkBind(m *mountRequest) error {
	switch {
	case len(m.Source) > maxPath:
		return tooLong(m.Source)
	case !path.IsAbs(m.Source) || strings.ContainsAny(m.Source, "\x00\n"):
		return refuse(RuleMount, "write an absolute path of the workspace", "the source %.200q is not absolute", m.Source)
	case !oneOf(m.BindOptions.Propagation, "", "rprivate", "private"):
		return refuse(RuleMount, "leave it out", "the propagation %.50q: mounts of containers don't come out of them", m.BindOptions.Propagation)
	}
	return nil
}

// kernelPlaces are where the kernel's own files are in a container.
var kernelPlaces = []string{"/proc", "/sys", "/dev"}

// keptTargets are places of a container in which nothing is mounted for a guest.
var keptTargets = append([]string{"/run/bawn", holderProgram, holderControl}, enginePlaces...)

const (
	hostsFile     = "/etc/hosts"
	holderProgram = "/.bawn"      // in the container that keeps a session's network
	holderControl = "/.bawn.sock" // there as well
)

func checkTarget(target string) error {
	clean := path.Clean(target)
	switch {
	case !path.IsAbs(target) || clean == "/" || strings.ContainsAny(target, "\x00\n") || slices.Contains(strings.Split(target, "/"), ".."):
		return refuse(RuleMount, "write an absolute path below /", "nothing can be mounted at %.200q", target)
	case len(target) > maxPath:
		return tooLong(target)
	case tooDeep(clean):
		return refuse(RuleMount, "mount it higher up", "%.200q is more than %d directories deep", target, maxDeep)
	case within(clean, "/dev/shm"):
		return refuse(RuleMount, "say how large it is (HostConfig.ShmSize, --shm-size)", "nothing can be mounted at %.200q: the engine does that", target)
	}
	for _, k := range keptTargets {
		if within(clean, k) {
			return refuse(RuleMount, "mount it somewhere else", "nothing can be mounted at %.200q: the place is the engine's or Bawn's", target)
		}
	}
	for _, k := range enginePlaces {
		if within(k, clean) {
			return refuse(RuleMount, "mount it somewhere else, or something below it", "nothing can be mounted at %.200q: the engine mounts %q within", target, k)
		}
	}
	return nil
}

// within reports whether clean, absolute p is dir or below it.
func within(p, dir string) bool {
	return p == dir || dir == "/" || strings.HasPrefix(p, dir+"/")
}

// covers says whether something at an absolute path of the guest may be given
// to a container.
func (v View) covers(guest string) error {
	p := path.Clean(guest)
	if v.Open == nil || !slices.ContainsFunc(v.Below, func(dir string) bool { return path.IsAbs(dir) && within(p, path.Clean(dir)) }) {
		return refuse(RuleMount, "mount something of the workspace, or copy it in (docker cp)", "%.200q is outside of the workspace", guest)
	}
	return nil
}

// number prints n for a message.
func number(n int64) string { return strconv.FormatInt(n, 10) }
