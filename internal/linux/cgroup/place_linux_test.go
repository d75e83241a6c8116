package cgroup

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// tree writes plain files that look like version 2 groups: path, then the
// controllers that are there, then those enabled for children.
func tree(t *testing.T, groups ...[3]string) string {
	t.Helper()
	top := t.TempDir()
	for _, g := range groups {
		dir := filepath.Join(top, g[0])
		err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, "cgroup.procs"), nil, 0o644),
			os.WriteFile(filepath.Join(dir, "cgroup.controllers"), []byte(g[1]+"\n"), 0o644),
			os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte(g[2]+"\n"), 0o644))
		if err != nil {
			t.Fatal(err)
		}
	}
	return top
}

func TestChooseV2(t *testing.T) {
	top := tree(t,
		[3]string{".", "cpu memory pids", "memory pids"},
		[3]string{"user", "memory pids", "memory pids"},
		[3]string{"user/app", "memory pids", "memory pids"},
		[3]string{"user/app/scope", "", ""})
	scope := filepath.Join(top, "user/app/scope")
	h := &hierarchy{version: 2, top: top, own: scope}
	p, err := chooseV2(h, []string{memory, pids})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{filepath.Join(top, "user/app"), scope}
	if diff := cmp.Diff(want, append([]string{p.dir}, p.skipped...)); diff != "" {
		t.Errorf("place and what was skipped (-want +got):\n%s", diff)
	}
	missing := blame(h, []string{memory, "rdma"}, errors.New("no place"))
	if len(missing) != 1 || missing[0].Name != "rdma" || !strings.Contains(missing[0].Why, errAbsent.Error()) {
		t.Errorf("blame is %+v; want only the controller that is nowhere", missing)
	}
}

// A limit on a group that the guest would step out of goes with it.
func TestBounds(t *testing.T) {
	top := tree(t, [3]string{".", "", ""}, [3]string{"a", "", ""}, [3]string{"a/b", "", ""})
	files := map[string]string{
		"a/memory.max": "1048577\n", "a/b/memory.max": "max\n", "a/pids.max": "100\n", "a/b/pids.max": "7\n", "a/cpu.max": "50000 100000\n",
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(top, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	p := place{version: 2, dir: top, skipped: []string{filepath.Join(top, "a/b"), filepath.Join(top, "a")}}
	got, err := p.bounds()
	if want := (Limits{MemoryMB: 2, PIDs: 7, CPUs: 0.5}); err != nil || got != want {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
	if err := os.WriteFile(filepath.Join(top, "a/pids.max"), []byte("lots"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := p.bounds(); err == nil {
		t.Error("a limit that can't be read was taken for none")
	}
}

func TestEnableWritesOnlyWhatLacks(t *testing.T) {
	top := tree(t, [3]string{".", "memory pids cpu", ""})
	if err := usable(top, []string{memory, cpu}); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(top, "cgroup.subtree_control"))
	if err != nil || string(b) != "+memory +cpu" {
		t.Errorf("wrote %q, %v", b, err)
	}
}

// Only the root may have both processes and children with controllers.
func TestProcessesInTheWay(t *testing.T) {
	top := tree(t, [3]string{".", "pids", "pids"})
	if err := os.WriteFile(filepath.Join(top, "cgroup.procs"), []byte("0\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := usable(top, []string{pids}); err != nil {
		t.Errorf("the root: %v", err)
	}
	if err := os.WriteFile(filepath.Join(top, "cgroup.type"), []byte("domain\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := usable(top, []string{pids}); !errors.Is(err, unix.EBUSY) {
		t.Errorf("a group that is not the root: %v; want EBUSY", err)
	}
}

// A directory that is no control group would limit nothing.
func TestPlainDirectoryRefused(t *testing.T) {
	top := t.TempDir()
	for version := 1; version <= 2; version++ {
		g := &Group{name: "bawn-x"}
		err := g.add(place{version: version, controllers: []string{pids}, dir: top}, Limits{PIDs: 8})
		if err == nil || !strings.Contains(err.Error(), "not in a control group file system") {
			t.Errorf("version %d: got %v", version, err)
		}
		if err := g.Remove(); err != nil {
			t.Error(err)
		}
	}
}

// The reason given is the one that the user can do something about.
func TestReasons(t *testing.T) {
	top := tree(t, [3]string{".", "memory", "memory"}, [3]string{"own", "memory", ""})
	own := filepath.Join(top, "own")
	_, err := chooseV2(&hierarchy{version: 2, top: own, own: own}, []string{cpu})
	if !errors.Is(err, errAbsent) || !strings.Contains(remedy(err), "Delegate=cpu") {
		t.Errorf("got %v, remedy %q", err, remedy(err))
	}
	for err, want := range map[error]string{
		unix.EROFS: "writable", unix.EACCES: "systemd-run", unix.EPERM: "systemd-run", unix.EBUSY: "DelegateSubgroup=",
		unix.ENOSPC: "",
	} {
		if got := remedy(err); !strings.Contains(got, want) || (want == "") != (got == "") {
			t.Errorf("remedy of %v is %q; want %q in it", err, got, want)
		}
	}
	// systemd delegates no group of version 1.
	for version, want := range map[int]string{1: "unified_cgroup_hierarchy", 2: "systemd-run"} {
		u := place{version: version, controllers: []string{pids}}.unavailable(unix.EACCES)
		if len(u) != 1 || !strings.Contains(u[0].Remedy, want) || version == 1 && strings.Contains(u[0].Remedy, "systemd-run") {
			t.Errorf("version %d: got %+v; want %q in the remedy", version, u, want)
		}
	}
}

// An earlier Bawn may have been in a group beside ours.
func TestPlacesBesideOurs(t *testing.T) {
	top := tree(t, [3]string{"scopes/a", "", ""}, [3]string{"scopes/b", "", ""}, [3]string{"else/c", "", ""})
	for own, want := range map[string][]string{
		"scopes/b": {"scopes/a", "scopes/b"},
		"":         {""},
	} {
		h := &hierarchy{version: 1, controllers: []string{memory}, top: top, own: filepath.Join(top, own)}
		for i := range want {
			want[i] = filepath.Join(top, want[i])
		}
		if diff := cmp.Diff(want, h.places()); diff != "" {
			t.Errorf("own group %q (-want +got):\n%s", own, diff)
		}
	}
	h := &hierarchy{version: 1, controllers: []string{"freezer"}, top: top, own: top}
	if got := h.places(); got != nil {
		t.Errorf("a hierarchy that New doesn't use has places %q", got)
	}
}
