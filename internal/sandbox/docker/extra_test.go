package docker

import (
	"errors"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bawn-dev/bawn"
)

var limits = bawn.Resources{MemoryMB: 1024, PIDs: 100, CPUs: 2, OpenFiles: 1000, FileSizeMB: 10, TmpMB: 64, CPUShares: 512}

// TestWideningIsRefused tries every way to get more than a session has. The
// control is each of them with the user's leave, where there is one.
func TestWideningIsRefused(t *testing.T) {
	allowable := []string{
		"--device=/dev/kvm", "--gpus=all", "--group-add=docker", "--sysctl=net.ipv4.ip_forward=1", "--runtime=crun", "--ipc=host", "--ipc=shareable", "--uts=host", "--userns=host", "--cgroupns=host",
		"--security-opt=seccomp=unconfined", "--security-opt=apparmor=unconfined", "--security-opt=label=disable", "--security-opt=systempaths=unconfined", "--volume=/etc:/host:ro", "--volume=/:/host",
	}
	for _, arg := range allowable {
		var fe *FlagError
		if _, err := ParseExtra([]string{arg}, nil, limits); !errors.As(err, &fe) || fe.Remedy == "" {
			t.Errorf("%s: got %v; want a refusal with a remedy", arg, err)
		}
		x, err := ParseExtra([]string{arg}, []string{arg}, limits)
		if err != nil || len(x.InPart) != 1 || x.InPart[0].Attribute == "" {
			t.Errorf("control: %s, allowed: %+v, %v", arg, x.InPart, err)
		}
		if _, err := ParseExtra([]string{arg}, []string{arg + "x", strings.SplitN(arg, "=", 2)[0]}, limits); err == nil {
			t.Errorf("%s: what is allowed is another value", arg)
		}
	}
	for _, arg := range []string{
		"--privileged", "--privileged=true", "--cap-add=SYS_ADMIN", "--pid=host", "--pid=container:x", "--network=host", "--net=host", "--network=bridge", "--mount=type=bind,src=/,dst=/h", "--volumes-from=x",
		"--volume=/var/run/docker.sock:/s", "-v=/run/podman/podman.sock:/s", "--use-api-socket", "--device-cgroup-rule=a *:* rwm", "--cgroup-parent=/x", "--publish=80:80", "-p80:80", "-P", "--publish-all", "--env=A=b", "-eA=b", "--env-file=/x",
		"--user=root", "-u0", "--entrypoint=sh", "--oom-kill-disable", "--oom-score-adj=-1000", "--dns=1.1.1.1", "--add-host=x:host-gateway", "--memory=2g", "-m2g", "--memory=0", "--memory=-1", "--pids-limit=-1", "--pids-limit=0", "--pids-limit=101",
		"--cpus=3", "--cpus=NaN", "--cpus=0", "--cpu-shares=1024", "--shm-size=1g", "--ulimit=nofile=2000", "--ulimit=nofile=1:2000", "--ulimit=nofile=-1", "--ulimit=rtprio=99", "--ulimit=memlock=-1", "--memory-swap=-1", "--restart=always",
		"--label=dev.bawn.session=x", "--label==x", "--tmpfs=/workspace", "--tmpfs=/proc/x", "--tmpfs=/opt/x:exec", "--tmpfs=/opt/x:size=65m", "--tmpfs=/opt/../workspace", "--tmpfs=opt", "--hostname=a b", "--hostname=$(x)",
		"--read-only=false", "--init=false", "--security-opt=no-new-privileges=false", "--log-driver=syslog", "--pull=always", "--health-cmd=id", "--annotation=a=b", "--frobnicate", "--frobnicate=1", "-z", "-", "--", "---", "image", "", "--=x", "--PRIVILEGED",
		"--rm=1", "--cpuset-cpus=0;1", "--isolation=process", "--stop-signal=KILL", "--link=x", "--cidfile=/x", "--volume=rel:/x", "--name=x",
	} {
		if x, err := ParseExtra([]string{arg}, []string{arg}, limits); err == nil {
			t.Errorf("%s: accepted as %+v", arg, x)
		}
	}
}

func TestHarmlessIsApplied(t *testing.T) {
	args := []string{
		"--label", "team=red", "-l", "a", "--hostname=box", "-hbox2", "--domainname", "example", "--add-host=db:10.0.0.1", "--add-host", "v6:[fd00::1]", "--tmpfs=/opt/x", "--tmpfs", "/opt/y:size=1m,mode=1777", "--ulimit=core=0", "--ulimit", "nofile=10:20",
		"--shm-size=32m", "-m", "512m", "--pids-limit=50", "--cpus=0.5", "-c10", "--cpuset-cpus=0-1,3", "--cpuset-mems=0", "--oom-score-adj=500", "--cap-drop=ALL", "--cap-drop", "NET_RAW", "--rm", "--init", "-i", "-t", "--read-only=true", "--network=none", "--net", "none", "--ipc=private",
		"--security-opt=no-new-privileges", "--log-driver=none", "--restart=no", "--pull=never",
	}
	x, err := ParseExtra(args, nil, limits)
	want := Extra{
		Labels: map[string]string{"team": "red", "a": ""}, Hostname: "box2", Domainname: "example", Hosts: []string{"db:10.0.0.1", "v6:fd00::1"}, Tmpfs: map[string]int64{"/opt/x": 64, "/opt/y": 1},
		Ulimits: []Ulimit{{"core", 0, 0}, {"nofile", 10, 20}}, ShmMB: 32, MemoryMB: 512, PIDs: 50, CPUs: 0.5, CPUShares: 10, CPUSet: "0-1,3", MemSet: "0", OOMScore: 500, Sysctls: map[string]string{},
	}
	if d := cmp.Diff(want, x); err != nil || d != "" {
		t.Errorf("%v %s", err, d)
	}
}

// TestEveryReasonIsSaid wants all refusals at once.
func TestEveryReasonIsSaid(t *testing.T) {
	_, err := ParseExtra([]string{"--privileged", "--label=a", "--pid", "host", "--cap-add"}, nil, limits)
	if err == nil || strings.Count(err.Error(), "\n") != 2 || !strings.Contains(err.Error(), "its value is missing") {
		t.Errorf("got %v", err)
	}
}

// TestNoFlagIsForgotten compares with the flags of the docker that is here:
// each is known, whatever becomes of it.
func TestNoFlagIsForgotten(t *testing.T) {
	path, err := exec.LookPath("docker")
	if err != nil {
		return // the list is what it was when it was written
	}
	out, err := exec.Command(path, "run", "--help").Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		_, rest, ok := strings.Cut(line, "--")
		if name, _, _ := strings.Cut(rest, " "); ok && strings.HasPrefix(strings.TrimSpace(line), "-") {
			if name = strings.TrimSpace(name); name != "help" && flags[name].never == "" && flags[name].take == nil && !known(name) {
				t.Errorf("--%s is not in the table", name)
			}
		}
	}
}

func known(name string) bool { _, ok := flags[name]; return ok }

// FuzzParseExtra wants of whatever is accepted that it gives nothing wider.
func FuzzParseExtra(f *testing.F) {
	for _, s := range []string{"--label=a=b", "-m 512m", "--privileged", "--ulimit\x00nofile=1:2", "--tmpfs=/opt/x:size=1m", "--add-host=a:1.2.3.4", "-v\x00/:/x", "--cpus=1e-2"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		x, err := ParseExtra(strings.Split(text, "\x00"), nil, limits)
		if err != nil {
			return
		}
		wide := len(x.Devices)+len(x.Groups)+len(x.Security)+len(x.Sysctls)+len(x.Binds)+len(x.InPart) > 0 || x.GPUs+x.Runtime+x.IPC+x.UTS+x.UserNS+x.CgroupNS != ""
		over := x.MemoryMB > limits.MemoryMB || x.PIDs > limits.PIDs || x.CPUs > limits.CPUs || x.ShmMB > limits.TmpMB || x.CPUShares > limits.CPUShares || x.OOMScore < 0
		over = over || slices.ContainsFunc(x.Ulimits, func(u Ulimit) bool {
			b := ulimits[u.Name](limits)
			return u.Soft > u.Hard || u.Soft < 0 || b > 0 && u.Hard > b
		})
		for name := range x.Labels {
			over = over || strings.HasPrefix(name, ownLabels)
		}
		for at, size := range x.Tmpfs {
			over = over || size > limits.TmpMB || strings.HasPrefix(at, "/workspace") || strings.Contains(at, "..") && strings.Contains(at, "/../")
		}
		if wide || over {
			t.Errorf("%q gave %+v", text, x)
		}
	})
}
