package seatbelt

import (
	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/sandbox"
)

// lost is what is not known of a session's processes.
const lost = "what has left its process group and lost its parent is nobody's"

// untried is why nothing is called enforced.
const untried = "the conformance suite has not been run on a Mac"

// capabilities says what the profile is worth. Where a trial failed, or there is
// no sandbox-exec, why says so and nothing is enforced.
func capabilities(why, remedy string) []bawn.Capability {
	list := onMac()
	if why == "" {
		return list
	}
	for i := range list {
		list[i] = bawn.Capability{Attribute: list[i].Attribute, Why: why, Remedy: remedy}
	}
	return list
}

func partly(attribute, how, lacks string) bawn.Capability {
	if lacks != "" {
		lacks += "; "
	}
	return bawn.Capability{Attribute: attribute, Strength: bawn.Partly, How: how, Why: lacks + untried}
}

func no(attribute, why string) bawn.Capability {
	return bawn.Capability{Attribute: attribute, Why: why, Remedy: "use another provider, in a virtual machine"}
}

// onMac is what the profile does where it can be applied.
func onMac() []bawn.Capability {
	return []bawn.Capability{
		partly(sandbox.FSWrite, "profile: writes only below the writable places", "system services that the guest may speak to write for themselves"),
		partly(sandbox.FSRead, "profile: hidden places are denied, and what is above them can't be moved", "by path: another link to the same file, made before, shows it"),
		no(sandbox.FSPatterns, "a profile of this machine's is not made from patterns: name the files one by one"),
		partly(sandbox.FSProtect, "profile: names are denied in any case of letters, there or not", "git can't make a repository, a worktree or a submodule, or change its configuration; .github and .config can't be made"),
		partly(sandbox.FSPrivate, "temporary directories of the session's own; others are hidden", "no copies of caches: private ones are read-only"),
		partly(sandbox.Processes, "profile: signals and information within the sandbox", "processes are listed by sysctl; what leaves its process group and outlives a killed Bawn goes on"),
		partly(sandbox.IPC, "profile: a short list of Mach services", "POSIX semaphores by name are the machine's"),
		partly(sandbox.Kernel, "profile", "system calls are not filtered"),
		partly(sandbox.Terminal, "a pseudo-terminal of the session's own", "TIOCSTI works on it"),
		partly(sandbox.NetNone, "profile: no connection, no service", "what the guest serves on loopback the whole machine reaches, and the guest itself does not"),
		partly(sandbox.NetAllow, "profile: connections to the relay's proxy alone", "a program that knows no proxy has no network, since nothing leads connections there without root, and one that has the system verify certificates has no TLS; other programs of this machine reach the proxy too; what the guest serves on loopback the whole machine reaches, and the guest itself does not"),
		partly(sandbox.NetFull, "profile: the host's network, without its UNIX sockets", "its loopback too"),
		partly(sandbox.LimitFiles, "RLIMIT_NOFILE", ""),
		partly(sandbox.LimitFileSize, "RLIMIT_FSIZE", "perhaps at half of it"),
		partly(sandbox.LimitPIDs, "counted once a second; a session above it is ended", lost),
		partly(sandbox.LimitMemory, "counted once a second; a session above it is ended", lost),
		partly(sandbox.LimitTime, "the session's processes are killed", lost),
		no(sandbox.LimitCPU, "macOS has no control groups"),
		no(sandbox.DevicesByName, "devices are not given by name on macOS"),
	}
}
