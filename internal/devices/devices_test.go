package devices

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestNothingDangerousHasAKind: names that drivers give, and what a session with
// the device could do.
func TestNothingDangerousHasAKind(t *testing.T) {
	for name, why := range map[string]string{
		"sda": "a disk", "nvme0n1": "a disk", "nvme0": "a disk's controller", "ng0n1": "a disk's generic end", "sg0": "a SCSI device", "bsg/0:0:0:0": "a SCSI device", "loop0": "a disk", "dm-0": "a disk",
		"mapper/control": "disks", "loop-control": "disks", "btrfs-control": "disks", "mmcblk0": "a disk", "vda": "a disk", "md0": "a disk", "nbd0": "a disk", "raw/raw1": "a disk", "zram0": "memory",
		"mem": "memory", "kmem": "memory", "port": "the machine's ports", "kmsg": "the kernel's log", "oldmem": "memory", "cpu/0/msr": "the processor", "cpu/0/cpuid": "the processor",
		"tty": "a terminal", "tty0": "a terminal", "tty1": "a terminal", "ttyS0": "a terminal", "console": "a terminal", "ptmx": "terminals", "pts/0": "a terminal", "pts": "terminals", "vcs": "the screen", "vcsa1": "the screen",
		"input/event0": "a keyboard", "input/mice": "a mouse", "uinput": "a keyboard to type with", "hidraw0": "a keyboard", "uhid": "a keyboard to type with", "fb0": "the screen", "dri/card0": "the screen",
		"video0": "a camera", "snd/pcmC0D0c": "a microphone", "snd": "a microphone", "watchdog": "the machine's end", "tpm0": "keys", "nvram": "the firmware", "mei0": "the firmware", "rtc0": "the clock",
		"vfio/vfio": "any device", "vfio/1": "a device's memory access", "uio0": "a device", "i2c-0": "the board", "gpiochip0": "the board", "vhost-net": "the host's network", "vhost-vsock": "the hypervisor", "vsock": "the hypervisor",
		"shm": "the host's memory", "mqueue": "the host's queues", "hugepages": "memory", "fd": "descriptors", "fd/0": "descriptors", "stdin": "descriptors", "disk": "disks", "disk/by-id/x": "disks", "dri": "the screen too", "net": "a directory",
		"userfaultfd": "the kernel", "autofs": "mounts", "cuse": "devices", "ppp": "the network", "rfkill": "radios", "bus/usb/001/002": "anything that is plugged in", "cpu_dma_latency": "the processor",
		"": "nothing", ".": "all", "..": "all", "../sda": "a disk", "/dev/kvm": "an absolute path", "kvm/": "no name", "kvm/../sda": "a disk", "./kvm": "no name", "dri/../sda": "a disk",
		"nvidia": "a group", "gpu": "a group", "nvidia#": "no number", "nvidia-1": "no number", "nvidia+1": "no number", "nvidia01": "another name", "nvidia0x0": "no number", "nvidia0/../sda": "a disk", "nvidia99999999": "more than there can be", "dri/renderD": "no number", "kvm\x00": "no name",
	} {
		if Allowed(name) {
			t.Errorf("%q can be given, which is %s", name, why)
		}
	}
	for _, name := range []string{"nvidia0", "nvidia15", "nvidiactl", "nvidia-uvm", "nvidia-caps/nvidia-cap1", "dri/renderD128", "kfd", "accel/accel0", "kvm", "fuse", "net/tun", "null"} {
		if !Allowed(name) {
			t.Errorf("control: %q can't be given", name)
		}
	}
}

// TestNumbers: a node under a good name that is another device.
func TestNumbers(t *testing.T) {
	for _, c := range []struct {
		name         string
		major, minor uint32
		ok           bool
	}{
		{"kvm", 10, 232, true}, {"kvm", 10, 223, false}, {"kvm", 1, 1, false}, {"kvm", 8, 232, false},
		{"nvidia0", 195, 0, true}, {"nvidia0", 195, 1, false}, {"nvidia1", 195, 1, true}, {"nvidia255", 195, 255, true}, {"nvidiactl", 195, 255, true},
		{"dri/renderD128", 226, 128, true}, {"dri/renderD128", 226, 0, false}, {"dri/renderD0", 226, 0, true},
		{"kfd", 240, 0, true}, {"kfd", 511, 3, true}, {"kfd", 1, 1, false}, {"kfd", 233, 0, false}, {"kfd", 255, 0, false}, {"kfd", 202, 0, false}, {"kfd", 512, 0, false}, {"kfd", 10, 1, false},
		{"nvidia-caps/nvidia-cap2", 235, 2, true}, {"nvidia-caps/nvidia-cap2", 235, 1, false},
	} {
		k, _ := kindOf(c.name)
		n, _ := k.number(c.name)
		if why := k.numbers(n, c.major, c.minor); (why == "") != c.ok {
			t.Errorf("%s as %d:%d: %q; want it to be right: %v", c.name, c.major, c.minor, why, c.ok)
		}
	}
}

// TestCheck: what is not there, not a device, or another one, is refused with
// what there is.
func TestCheck(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "dri"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, to := range map[string]string{"kvm": "", "fuse": "/dev/null", "dri/renderD128": "/dev/zero", "nvidia0": "/nonexistent"} {
		file := filepath.Join(dir, name)
		err := os.WriteFile(file, nil, 0o600)
		if to != "" {
			err = errors.Join(os.Remove(file), os.Symlink(to, file))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{
		"kvm": "is no character device", "fuse": "is no character device", "dri/renderD128": "is no character device", "nvidia0": "is no character device",
		"kfd": "does not exist", "gpu": "of which nothing is here", "nvidia": "of which nothing is here", "sda": "does not exist", "dri": "is no device",
	} {
		var e *Error
		if err := Check(dir, name); !errors.As(err, &e) || !strings.Contains(e.Why, want) || e.Name != name || len(e.Have) > 0 {
			t.Errorf("%s: %v; want %q and that nothing is there", name, err, want)
		}
	}
	if got := Expand(dir, []string{"kvm", "gpu", "kvm"}); !slices.Equal(got, []string{"kvm"}) {
		t.Errorf("Expand = %q", got)
	}
}

// TestHere looks at the devices of this machine, of which null is one.
func TestHere(t *testing.T) {
	have := Available(Dir)
	if !slices.Contains(have, "null") {
		t.Fatalf("Available = %q", have)
	}
	for _, name := range have {
		if err := Check(Dir, name); err != nil {
			t.Error(err)
		}
	}
	for _, name := range []string{"kmsg", "console", "tty"} {
		if err := Check(Dir, name); err == nil || slices.Contains(have, name) {
			t.Errorf("%s can be given", name)
		}
	}
	whole, list := Expand(Dir, []string{"gpu"}), Expand(Dir, []string{"nvidia", "gpu", "gpu"})
	slices.Sort(whole)
	slices.Sort(list)
	if diff := cmp.Diff(whole, list); diff != "" {
		t.Errorf("gpu is not what its parts are: %s", diff)
	}
}
