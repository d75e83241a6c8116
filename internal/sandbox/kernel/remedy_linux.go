package kernel

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// NamespaceRemedy says what to do about the error of making a namespace of a
// kind: user, mount, pid, net, ipc, uts or cgroup. Of several kinds at once it
// is the user namespace that is refused as a rule.
func NamespaceRemedy(err error, kind string) string {
	switch {
	case err == nil:
		return ""
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
		return UsernsRemedy()
	case errors.Is(err, unix.ENOSPC):
		if knob("/proc/sys/user/max_user_namespaces") == "0" {
			kind = "user" // comes first, and takes the others with it
		}
		return "raise the limit: sudo sysctl user.max_" + map[bool]string{true: "mnt", false: kind}[kind == "mount"] + "_namespaces=15000"
	case errors.Is(err, unix.EINVAL):
		return "the kernel lacks a kind of namespace (CONFIG_*_NS); \"bawn doctor\" shows which"
	}
	return "\"bawn doctor\" shows what this machine can enforce"
}

// UsernsRemedy returns the command that opens unprivileged user namespaces
// here, by the switch that closes them.
func UsernsRemedy() string {
	if knob("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == "1" {
		exe, err := os.Executable()
		if err != nil {
			exe = "/usr/local/bin/bawn"
		}
		return fmt.Sprintf("AppArmor closes user namespaces; allow them to bawn: printf 'abi <abi/4.0>,\\ninclude <tunables/global>\\nprofile bawn %s flags=(unconfined) {\\n  userns,\\n}\\n' | sudo tee /etc/apparmor.d/bawn && sudo apparmor_parser -r /etc/apparmor.d/bawn", exe)
	}
	if knob("/proc/sys/kernel/unprivileged_userns_clone") == "0" {
		return "allow user namespaces: sudo sysctl kernel.unprivileged_userns_clone=1"
	}
	if knob("/proc/sys/user/max_user_namespaces") == "0" {
		return "allow user namespaces: sudo sysctl user.max_user_namespaces=15000"
	}
	return "user namespaces are refused here (a container's seccomp profile, or a sandbox around this one); run bawn outside of it"
}

func knob(file string) string {
	text, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}
