package dockerapi

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"
)

// marked is what a container says whose /dev is a volume of the guest's. With a
// runc before November 2025 that is the way to the kernel's settings (TestTrial);
// with any runc it shows that the mount went elsewhere than its name said.
const marked = "the guest chose what /dev is"

const findMark = "[ -e /dev/mark ] && echo " + marked + "; echo ran"

// tarball holds links, and directories for names without a target.
func tarball(t *testing.T, links map[string]string) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for name, to := range links {
		h := &tar.Header{Name: name, Typeflag: tar.TypeDir, Mode: 0o755}
		if to != "" {
			h.Typeflag, h.Linkname = tar.TypeSymlink, to
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// image makes one of the busybox and more, by a container of the engine's own.
func (r *rig) image(name string, links map[string]string, changes ...string) string {
	r.t.Helper()
	id := r.directly("POST", "/containers/create", dict{"Image": busybox, "NetworkDisabled": true})
	defer r.direct("DELETE", "/containers/"+id+"?v=1", nil)
	if status, data := r.direct("PUT", "/containers/"+id+"/archive?path=/", tarball(r.t, links)); status != http.StatusOK {
		r.t.Fatalf("%d %s", status, data)
	}
	r.directly("POST", "/commit?"+url.Values{"container": {id}, "repo": {name}, "tag": {"1"}, "changes": changes}.Encode(), dict{})
	r.t.Cleanup(func() { r.direct("DELETE", "/images/"+name+":1?force=1", nil) })
	return name + ":1"
}

// directly makes something at the engine itself, and returns its ID.
func (r *rig) directly(method, path string, body any) string {
	r.t.Helper()
	status, data := r.direct(method, path, body)
	var made struct {
		ID string `json:"Id"`
	}
	if err := json.Unmarshal(data, &made); err != nil || status != http.StatusCreated {
		r.t.Fatalf("%s %s: %d %s", method, path, status, data)
	}
	return made.ID
}

// api is the broker, or the engine itself for a control.
type api func(method, path string, body any) (int, []byte)

// outcome makes a container and, when a step lies between, starts it: what it
// wrote, or why not.
func (r *rig) outcome(call api, name string, body dict, between func(call api, id string)) string {
	r.t.Helper()
	status, data := call("POST", "/containers/create?name="+name, body)
	var made struct {
		ID string `json:"Id"`
	}
	if json.Unmarshal(data, &made) != nil || status != http.StatusCreated {
		return string(data)
	}
	defer call("DELETE", "/containers/"+made.ID+"?force=1&v=1", nil)
	if between != nil {
		between(call, made.ID)
	}
	if status, data := call("POST", "/containers/"+made.ID+"/start", nil); status != http.StatusNoContent {
		return string(data)
	}
	call("POST", "/containers/"+made.ID+"/wait", nil)
	_, out := call("GET", "/containers/"+made.ID+"/logs?stdout=1&stderr=1", nil)
	return demultiplex(out)
}

// A mount goes where its name says: whatever the image holds, a volume holds, an
// earlier run or docker cp has left.
func TestMountsGoWhereTheirNamesSay(t *testing.T) {
	r := newRig(t, nil)
	linked := r.image("bawn-test/linked", map[string]string{"x": "/dev", "y": "/"})
	r.image("bawn-test/volumes", map[string]string{"a": ""}, `VOLUME ["/dev"]`)
	// Volumes of these names, for the broker and for the engine.
	for _, call := range []api{r.call, r.direct} {
		out := r.outcome(call, "seed", dict{"Image": busybox, "Cmd": []string{"sh", "-c", "touch /a/mark; ln -s /dev /b/dev; ln -s /proc/self/fd/5 /b/fd; echo seeded"},
			"HostConfig": dict{"Binds": []string{"bawn-t-null:/a", "bawn-t-link:/b"}, "NetworkMode": "none"}}, nil)
		if !strings.Contains(out, "seeded") {
			t.Fatal(out)
		}
	}
	t.Cleanup(func() {
		r.direct("DELETE", "/volumes/bawn-t-null", nil)
		r.direct("DELETE", "/volumes/bawn-t-link", nil)
	})
	binds := func(list ...string) dict { return dict{"Binds": list, "NetworkMode": "none"} }
	first := func(call api, id string) { // the container's own first run
		call("POST", "/containers/"+id+"/start", nil)
		call("POST", "/containers/"+id+"/wait", nil)
	}
	for _, a := range []struct {
		name    string
		body    dict
		between func(api, string)
		rule    string
	}{
		{"within a link of a volume", dict{"HostConfig": binds("bawn-t-link:/x", "bawn-t-null:/x/dev")}, nil, RuleMount},
		{"at /dev", dict{"HostConfig": binds("bawn-t-null:/dev")}, nil, RuleMount},
		{"a link of the image", dict{"Image": linked, "HostConfig": binds("bawn-t-null:/x")}, nil, RuleMount},
		{"behind a link of the image", dict{"Image": linked, "HostConfig": binds("bawn-t-null:/y/dev")}, nil, RuleMount},
		{"a link of an earlier run", dict{
			"Cmd":        []string{"sh", "-c", findMark + "; mv /p /q; mkdir -p /p; ln -s /dev /p/x"},
			"HostConfig": binds("bawn-t-null:/p/x"),
		}, first, RuleMount},
	} {
		t.Run(a.name, func(t *testing.T) {
			body := dict{"Image": busybox, "Cmd": []string{"sh", "-c", findMark}}
			for k, v := range a.body {
				body[k] = v
			}
			if out := r.outcome(r.direct, "bawn-t-control", body, a.between); !strings.Contains(out, marked) {
				t.Fatalf("the control shows nothing: %q", out)
			}
			if out := r.outcome(r.call, "attack", body, a.between); strings.Contains(out, marked) || !strings.Contains(out, a.rule) {
				t.Errorf("%q; want a refusal by %s", out, a.rule)
			}
		})
	}
	// What can't be shown with every engine.
	for name, body := range map[string]dict{
		"a volume of the image at /dev":  {"Image": "bawn-test/volumes:1"},
		"a directory that is a link":     {"WorkingDir": "/x", "Image": linked},
		"a directory in a volume's link": {"WorkingDir": "/v/fd", "HostConfig": binds("bawn-t-link:/v")},
		"a descriptor as the directory":  {"WorkingDir": "/proc/self/fd/7"},
		"dots in the directory":          {"WorkingDir": "/bin/../proc/self/fd/7"},
		"a volume field within another":  {"Volumes": dict{"/x": dict{}, "/x/y": dict{}}},
		"a tmpfs within a volume":        {"HostConfig": dict{"Binds": []string{"v:/x"}, "Tmpfs": dict{"/x/y": ""}}},
		"a volume within a tmpfs":        {"HostConfig": dict{"Binds": []string{"v:/x/y"}, "Tmpfs": dict{"/x": ""}}},
		"a volume within a copy":         {"HostConfig": dict{"Binds": []string{r.workspace + ":/ws:ro", "v:/ws/y"}}},
		"two at one place":               {"HostConfig": dict{"Binds": []string{"v:/x"}, "Tmpfs": dict{"/x/": ""}}},
	} {
		if out := r.outcome(r.call, "attack", merge(dict{"Image": busybox, "Cmd": []string{"sh", "-c", "echo ran"}}, body), nil); !strings.Contains(out, "bawn refused this") {
			t.Errorf("%s: %q", name, out)
		}
	}
}

// docker cp puts links where an engine or runc follows them on the host: runc
// 1.1.5 makes what belongs into /dev by a name outside of the container.
func TestLinksByCopying(t *testing.T) {
	r := newRig(t, nil)
	host := t.TempDir()
	made := func() int {
		list, err := os.ReadDir(host)
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	put := func(link string) func(api, string) {
		return func(call api, id string) {
			if status, data := call("PUT", "/containers/"+id+"/archive?path=/", tarball(t, map[string]string{link: host})); status != http.StatusOK {
				t.Errorf("put: %d %s", status, data)
			}
		}
	}
	body := dict{"Image": busybox, "Cmd": []string{"sh", "-c", "echo ran"}, "HostConfig": dict{"NetworkMode": "none"}}
	if out := r.outcome(r.direct, "bawn-t-control", body, put("dev")); made() == 0 {
		t.Logf("this engine withstands it by itself: %q", out)
	}
	before := made()
	for _, link := range []string{"dev", "proc", "sys", "etc", "sbin"} {
		if out := r.outcome(r.call, "attack", body, put(link)); !strings.Contains(out, RuleMount) {
			t.Errorf("%s is a link: %q", link, out)
		}
	}
	if out := r.outcome(r.call, "plain", body, put("elsewhere")); out != "ran\n" {
		t.Errorf("a link that is on nobody's way: %q", out)
	}
	if n := made(); n != before {
		t.Errorf("the host has %d files more", n-before)
	}
}

func merge(into, from dict) dict {
	for k, v := range from {
		into[k] = v
	}
	return into
}

// Images whose /sbin is a link into /usr, as most are, run, with the engine's init
// as well; a volume in that place does not.
func TestMergedUsr(t *testing.T) {
	r := newRig(t, nil)
	merged := r.image("bawn-test/merged", map[string]string{"usr": "", "usr/sbin": "", "sbin": "usr/sbin"})
	run := func(host dict) string {
		return r.outcome(r.call, "merged", dict{"Image": merged, "Cmd": []string{"sh", "-c", "readlink /sbin; ls -d /sbin/docker-init"}, "HostConfig": host}, nil)
	}
	if out := run(dict{"Init": true}); !strings.Contains(out, "usr/sbin\n/sbin/docker-init") {
		t.Errorf("with init: %q", out)
	}
	if out := run(dict{}); !strings.Contains(out, "usr/sbin") {
		t.Errorf("without: %q", out)
	}
	for _, target := range []string{"/usr/sbin", "/usr"} {
		if out := run(dict{"Init": true, "Binds": []string{"v:" + target}}); !strings.Contains(out, RuleMount) {
			t.Errorf("a volume at %s: %q", target, out)
		}
	}
}

// No form of mount may have a target in, at or above a directory of the kernel or the
// engine.
func TestKeptTargets(t *testing.T) {
	for _, target := range []string{
		"/dev", "/dev/", "/dev/null", "/dev/shm", "/dev/pts/0", "/proc", "/proc/sys/kernel", "/proc/self/fd/3", "/sys", "/sys/fs/cgroup", "/etc", "/etc/hosts",
		"/etc/resolv.conf", "/etc/hostname/x", "/sbin", "/sbin/docker-init", "/", "//", "/x/../dev", "/.bawn", "/.bawn.sock", "/run/bawn/x", "dev", "",
	} {
		for form, r := range map[string]*createRequest{
			"Binds":   {HostConfig: hostRequest{Binds: []string{"v:" + target}}},
			"volume":  {HostConfig: hostRequest{Mounts: []mountRequest{{Type: typeVolume, Source: "v", Target: target}}}},
			"tmpfs":   {HostConfig: hostRequest{Mounts: []mountRequest{{Type: typeTmpfs, Target: target}}}},
			"bind":    {HostConfig: hostRequest{Mounts: []mountRequest{{Type: typeBind, Source: "/ws", Target: target, ReadOnly: true}}}},
			"Tmpfs":   {HostConfig: hostRequest{Tmpfs: map[string]string{target: ""}}},
			"Volumes": {common: common{Volumes: map[string]struct{}{target: {}}}},
		} {
			r.Image = "a"
			if _, err := judge("x", r); err == nil {
				t.Errorf("%s at %q is taken", form, target)
			}
		}
		w := &wanted{}
		image := &imageFacts{}
		image.Config.Volumes = map[string]struct{}{target: {}}
		if err := w.addImage(image); err == nil {
			t.Errorf("an image's volume at %q is taken", target)
		}
	}
	for _, target := range []string{"/etc/mysql", "/device", "/data", "/var/lib/x", "/tmp", "/run", "/srv/etc"} {
		r := &createRequest{common: common{Image: "a"}, HostConfig: hostRequest{Binds: []string{"v:" + target}}}
		if _, err := judge("x", r); err != nil {
			t.Errorf("control: %q: %v", target, err)
		}
	}
}

// Fields with which an engine would mount, share, or weaken the isolation.
func TestNeighbours(t *testing.T) {
	r := newRig(t, nil)
	mount := func(more dict) dict {
		return dict{"Mounts": []dict{merge(dict{"Type": "volume", "Source": "v", "Target": "/m"}, more)}}
	}
	bind := func(more dict) dict {
		return dict{"Mounts": []dict{{"Type": "bind", "Source": r.workspace, "Target": "/m", "ReadOnly": true, "BindOptions": more}}}
	}
	for name, host := range map[string]dict{
		"subpath":              mount(dict{"VolumeOptions": dict{"Subpath": "a/b"}}),
		"driver options":       mount(dict{"VolumeOptions": dict{"DriverConfig": dict{"Name": "local", "Options": dict{"type": "none"}}}}),
		"another driver":       mount(dict{"VolumeOptions": dict{"DriverConfig": dict{"Name": "nfs"}}}),
		"consistency":          mount(dict{"Consistency": "shared"}),
		"a volume's label":     mount(dict{"VolumeOptions": dict{"Labels": dict{"io.podman.annotations.privileged": "TRUE"}}}),
		"an image as a mount":  mount(dict{"Type": "image"}),
		"a cluster volume":     mount(dict{"Type": "cluster"}),
		"a pipe":               mount(dict{"Type": "npipe"}),
		"propagation rshared":  bind(dict{"Propagation": "rshared"}),
		"propagation shared":   bind(dict{"Propagation": "shared"}),
		"propagation rslave":   bind(dict{"Propagation": "rslave"}),
		"writable within":      bind(dict{"ReadOnlyNonRecursive": true}),
		"bind options":         {"Binds": []string{"v:/m:U"}}, // Podman would give all of it to the container's user
		"bind propagation":     {"Binds": []string{"v:/m:rshared"}},
		"bind volume-opt":      {"Binds": []string{"v:/m:exec,suid"}},
		"tmpfs options":        {"Tmpfs": dict{"/m": "exec,suid,dev"}},
		"tmpfs mount options":  {"Mounts": []dict{{"Type": "tmpfs", "Target": "/m", "TmpfsOptions": dict{"Options": [][]string{{"exec"}}}}}},
		"no masked paths":      {"MaskedPaths": []string{}, "ReadonlyPaths": []string{"/nowhere"}},
		"no read-only paths":   {"ReadonlyPaths": []string{"/nowhere"}},
		"systempaths":          {"SecurityOpt": []string{"systempaths=unconfined"}},
		"seccomp":              {"SecurityOpt": []string{"seccomp=unconfined"}},
		"a label of SELinux":   {"SecurityOpt": []string{"label=disable"}},
		"devices":              {"Devices": []dict{{"PathOnHost": "/dev/null", "PathInContainer": "/dev/x", "CgroupPermissions": "rwm"}}},
		"requests of devices":  {"DeviceRequests": []dict{{"Count": -1, "Capabilities": [][]string{{"gpu"}}}}},
		"rules of devices":     {"DeviceCgroupRules": []string{"a *:* rwm"}},
		"storage":              {"StorageOpt": dict{"size": "1G"}},
		"a runtime":            {"Runtime": "runsc"},
		"a group of processes": {"CgroupParent": "/"},
		"the host's groups":    {"CgroupnsMode": "host"},
		"another's groups":     {"Cgroup": "container:x"},
		"a log driver":         {"LogConfig": dict{"Type": "syslog", "Config": dict{"syslog-address": "unixgram:///dev/log"}}},
		"options of a log":     {"LogConfig": dict{"Type": "json-file", "Config": dict{"env": "A"}}},
		"annotations":          {"Annotations": dict{"dev.gvisor.flag.network": "host"}},
		"a file for the ID":    {"ContainerIDFile": "/tmp/id"},
		"volumes from":         {"VolumesFrom": []string{"x"}},
		"a volume driver":      {"VolumeDriver": "nfs"},
		"weights of devices":   {"BlkioWeightDevice": []dict{{"Path": "/dev/sda", "Weight": 10}}},
		"the kernel's memory":  {"KernelMemory": 1 << 20},
	} {
		status, answer := r.call("POST", "/containers/create?name=neighbour", dict{"Image": busybox, "HostConfig": host})
		if status < 400 || !strings.Contains(string(answer), "bawn refused this") {
			t.Errorf("%s: %d %s", name, status, answer)
		}
	}
	for _, label := range []string{"io.podman.annotations.init", "io.containers.autoupdate", "run.oci.handler", "IO.PODMAN.x"} {
		if status, answer := r.call("POST", "/containers/create", dict{"Image": busybox, "Labels": dict{label: "1"}}); status != http.StatusForbidden {
			t.Errorf("label %s: %d %s", label, status, answer)
		}
	}
	for _, q := range []dict{
		{"Name": "v", "DriverOpts": dict{"type": "none", "o": "bind", "device": "/"}}, {"Name": "v", "ClusterVolumeSpec": dict{"Group": "a"}}, {"Name": "v", "Driver": "nfs"},
	} {
		if status, answer := r.call("POST", "/volumes/create", q); status < 400 {
			t.Errorf("%v: %s", q, answer)
		}
	}
	r.run("runs", dict{"Cmd": []string{"sleep", "1000"}})
	for _, dir := range []string{"/proc/self/fd/8", "/proc/1/root", "/dev/fd/8", "/sys", "/tmp/../proc/self/fd/8"} {
		if status, answer := r.call("POST", "/containers/runs/exec", dict{"Cmd": []string{"true"}, "WorkingDir": dir}); status < 400 {
			t.Errorf("exec in %q: %s", dir, answer)
		}
	}
	for _, method := range []string{"GET", "HEAD", "PUT"} {
		for _, p := range []string{"/proc/self/root/etc", "/dev", "dev/x", "/sys/kernel", "/tmp/../proc/1"} {
			if status, answer := r.call(method, "/containers/runs/archive?path="+url.QueryEscape(p), []byte{}); status != http.StatusForbidden {
				t.Errorf("%s of %q: %d %s", method, p, status, answer)
			}
		}
	}
	// What clients send that says nothing is dropped, and what runs has none of it.
	r.must("POST", "/containers/create?name=plain", dict{"Image": busybox, "HostConfig": merge(bind(dict{"Propagation": "private", "NonRecursive": false, "CreateMountpoint": true}), dict{"Init": true, "Consistency": "", "ReadonlyRootfs": true})}, nil)
	_, data := r.direct("GET", "/containers/"+r.broker.prefix()+"plain/json", nil)
	var seen struct {
		HostConfig struct {
			MaskedPaths, ReadonlyPaths []string
			Mounts                     []struct{ BindOptions bindBody }
			Devices                    []any
			Runtime                    string
		}
	}
	if err := json.Unmarshal(data, &seen); err != nil {
		t.Fatal(err)
	}
	h := seen.HostConfig
	if len(h.MaskedPaths) < 5 || len(h.ReadonlyPaths) < 4 || len(h.Devices) > 0 || len(h.Mounts) == 0 || h.Mounts[0].BindOptions != (bindBody{"rprivate", true}) {
		t.Errorf("the engine has %s", fmt.Sprint(h))
	}
}
