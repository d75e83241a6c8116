package sandboxtest

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/config"
	"github.com/bawn-dev/bawn/internal/fspath"
	"github.com/bawn-dev/bawn/internal/sandbox/sandboxtest/probe"
)

// VictimVariable names the environment variable that holds the path of a
// victim built before, for machines without a compiler.
const VictimVariable = "BAWN_TEST_VICTIM"

// Fixtures are a piece of a host as a developer has it: a home directory with
// credentials, workspaces, services, a process. They lie below the real home
// directory, or below /var/lib for root: a sandbox may hide /tmp and
// /var/tmp, and there a check would prove nothing.
type Fixtures struct {
	probe.World
	Base    string   // everything lies below
	Victim  string   // the program to run inside
	Environ []string // of the process that starts the sandbox
	UID     int      // whose files and processes they are
	GID     int
	// Inside says where the guest finds what is elsewhere for it; nil: all is
	// where the host has it.
	Inside func(probe.World) probe.World

	trusting bool       // Command makes no namespaces
	leaks    []*os.File // descriptors from 3 of the process that starts the sandbox
	snapshot *snapshot
	host     *hostProcess
	objects  *sharedObjects
}

// Owner is the user for whom fixtures are made. Only root can make them for
// somebody else.
type Owner struct{ UID, GID int }

// Self is the user who runs the tests.
func Self() Owner { return Owner{os.Geteuid(), os.Getegid()} }

// OrdinaryUser stands for a user without privileges, whom no file names.
var OrdinaryUser = Owner{60321, 60321}

// New makes fixtures for owner around a copy of the victim. They are removed
// when t ends.
func New(t testing.TB, victim string, owner Owner) *Fixtures {
	t.Helper()
	f := &Fixtures{Base: newBase(t), UID: owner.UID, GID: owner.GID}
	f.Token = token(t)
	f.layOut()
	for _, step := range []func(t testing.TB){f.makeHome, f.withoutCaches, f.makeOutside, f.makeWorkspaces} {
		step(t)
	}
	f.installVictim(t, victim)
	f.giveAway(t)
	f.listen(t)
	f.facts(t)
	f.host = startHost(t, f)
	f.objects = makeObjects(t, f)
	f.leak(t)
	f.Environ = f.environ()
	f.snapshot = takeSnapshot(t, f.Base)
	return f
}

// withoutCaches puts files where Bawn would make the caches of programs that this
// machine happens to have: sessions of the suite get none, and change nothing outside.
func (f *Fixtures) withoutCaches(t testing.TB) {
	t.Helper()
	for _, c := range config.Caches() {
		p := filepath.Join(f.Home, c.Name[len("~"):])
		if _, err := os.Lstat(p); err == nil || os.MkdirAll(filepath.Dir(p), 0o755) != nil {
			continue
		}
		check(t, os.WriteFile(p, nil, 0o644))
	}
}

// newBase makes the directory below which everything lies.
func newBase(t testing.TB) string {
	t.Helper()
	parent := "/var/lib"
	if os.Geteuid() != 0 {
		home, err := os.UserHomeDir()
		check(t, err)
		parent = home
	}
	for _, private := range append(shared, "/run") {
		if fspath.Below(parent, private) {
			t.Fatalf("fixtures: home directory %q lies below %s, which a sandbox hides; want another HOME", parent, private)
		}
	}
	base, err := os.MkdirTemp(parent, ".bawn-test-")
	check(t, err)
	t.Cleanup(func() { removeTree(base) })
	check(t, os.Chmod(base, 0o755))
	return base
}

func token(t testing.TB) string {
	b := make([]byte, 8)
	_, err := rand.Read(b)
	check(t, err)
	return hex.EncodeToString(b)
}

// check fails t for want of a fixture.
func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("fixtures: %v", err)
	}
}

// layOut says where everything lies.
func (f *Fixtures) layOut() {
	at := func(p string) string { return filepath.Join(f.Base, p) }
	f.Home, f.Out = at("home"), at("out")
	f.State, f.Workspace = probe.Present, at("home/src/"+probe.Present)
	f.Secret, f.Denied = at("out/private/secret"), at("out/denied")
	f.Writable = at("out/writable")
	f.Config, f.Data = at("home/.config/bawn"), at("home/.local/state/bawn")
	f.Stream, f.Datagram, f.SeqPacket = at("out/run/stream"), at("out/run/datagram"), at("out/run/seqpacket")
	f.Agent, f.Bus = at("out/run/agent"), at("out/run/bus")
	f.Abstract, f.PIDMark = "bawn-"+f.Token, "host-"+f.Token
	f.Shm, f.Queue = "bawn-shm-"+f.Token, "bawn-queue-"+f.Token
	f.OpenFiles, f.FileSizeMB = 256, 8
	f.Victim = at("bin/victim")
}

// in returns the fixtures with the other workspace as the one to work in.
func (f *Fixtures) in(state string) *Fixtures {
	c := *f
	c.State, c.Workspace = state, filepath.Join(filepath.Dir(f.Workspace), state)
	return &c
}

// arg is the world as an argument for the victim.
func (f *Fixtures) arg() string {
	text, err := json.Marshal(f.world())
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// world is what the victim is told, as things are now.
func (f *Fixtures) world() probe.World {
	f.PID = f.host.pid()
	if f.Inside != nil {
		return f.Inside(f.World)
	}
	return f.World
}

// installVictim copies the victim to where every user and sandbox sees it,
// and a second time with another owner's set-user-ID bit.
func (f *Fixtures) installVictim(t testing.TB, victim string) {
	text, err := os.ReadFile(victim)
	check(t, err)
	check(t, os.MkdirAll(filepath.Dir(f.Victim), 0o755))
	check(t, writeProgram(f.Victim, text))
	if os.Geteuid() != 0 {
		return // nobody else to own it
	}
	f.SetID = filepath.Join(filepath.Dir(f.Victim), "set-id")
	other := 0
	if f.UID == 0 {
		other = OrdinaryUser.UID
	}
	check(t, writeProgram(f.SetID, text))
	check(t, os.Chown(f.SetID, other, other))
	check(t, unix.Chmod(f.SetID, 0o4711))
}

// giveAway makes the owner own the home directory and what is beside it.
func (f *Fixtures) giveAway(t testing.TB) {
	for _, dir := range []string{f.Home, f.Out} {
		check(t, filepath.WalkDir(dir, func(p string, _ os.DirEntry, err error) error {
			if err != nil {
				return err
			}
			return os.Lchown(p, f.UID, f.GID)
		}))
	}
}

// facts notes what the victim compares itself with.
func (f *Fixtures) facts(t testing.TB) {
	f.Namespaces = map[string]string{}
	for _, n := range []string{"user", "mnt", "pid", "net", "ipc", "uts", "cgroup", "time"} {
		if ns, err := os.Readlink("/proc/self/ns/" + n); err == nil {
			f.Namespaces[n] = ns
		}
	}
	f.Rlimits = map[string]probe.Rlimit{}
	for name, n := range probe.Limits {
		var l unix.Rlimit
		if unix.Getrlimit(n, &l) == nil {
			f.Rlimits[name] = probe.Rlimit{Cur: l.Cur, Max: l.Max}
		}
	}
	f.HostTypes = []string{fileSystem(t, "/"), fileSystem(t, f.Base)}
	sid, err := unix.Getsid(0)
	check(t, err)
	f.Launcher = sid
}

// leak opens what the process that starts the sandbox has forgotten to close.
func (f *Fixtures) leak(t testing.TB) {
	root, err := os.Open("/")
	check(t, err)
	leaked, err := os.OpenFile(filepath.Join(f.Out, "leaked"), os.O_RDWR|os.O_APPEND, 0)
	check(t, err)
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	check(t, err)
	f.leaks = []*os.File{root, leaked, os.NewFile(uintptr(pair[0]), "leak"), os.NewFile(uintptr(pair[1]), "peer")}
	t.Cleanup(func() {
		for _, l := range f.leaks {
			l.Close()
		}
	})
}

// environ is what a developer's shell has, and a secret.
func (f *Fixtures) environ() []string {
	return []string{
		"HOME=" + f.Home, "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8", "TERM=dumb",
		"USER=probe", "LOGNAME=probe", "SHELL=/bin/sh", probe.SecretVariable + "=" + f.Token, "AWS_SECRET_ACCESS_KEY=" + f.Token,
		"SSH_AUTH_SOCK=" + f.Agent, "DBUS_SESSION_BUS_ADDRESS=unix:path=" + f.Bus,
	}
}

// Command prepares a program as the process that starts the sandbox would start it: in
// the workspace, as the owner, with the owner's environment and descriptors
// left open. Where that is root it has mount and host name namespaces of its
// own, so that what a broken sandbox lets through stays in there.
func (f *Fixtures) Command(argv ...string) *exec.Cmd {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir, cmd.Env, cmd.ExtraFiles = f.Workspace, f.Environ, f.leaks[:3]
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	if os.Geteuid() == 0 && !f.trusting {
		cmd.SysProcAttr.Unshareflags = unix.CLONE_NEWNS | unix.CLONE_NEWUTS
	}
	if f.UID != os.Geteuid() {
		cmd.SysProcAttr.Credential = f.credential()
	}
	return cmd
}

func (f *Fixtures) credential() *syscall.Credential {
	return &syscall.Credential{Uid: uint32(f.UID), Gid: uint32(f.GID)}
}

// fileSystem names the kind of file system that holds p, as mountinfo does.
func fileSystem(t testing.TB, p string) string {
	var st unix.Statfs_t
	check(t, unix.Statfs(p, &st))
	names := map[int64]string{
		unix.EXT4_SUPER_MAGIC: "ext4", unix.XFS_SUPER_MAGIC: "xfs", unix.BTRFS_SUPER_MAGIC: "btrfs",
		unix.OVERLAYFS_SUPER_MAGIC: "overlay", unix.TMPFS_MAGIC: "tmpfs", unix.F2FS_SUPER_MAGIC: "f2fs",
	}
	if name, ok := names[int64(st.Type)]; ok {
		return name
	}
	return strconv.FormatInt(int64(st.Type), 16)
}

// Configure adds lines to the configuration of the process that starts the sandbox.
func (f *Fixtures) Configure(t testing.TB, lines string) {
	t.Helper()
	p := filepath.Join(f.Config, "config.toml")
	text, err := os.ReadFile(p)
	check(t, err)
	check(t, os.WriteFile(p, []byte(string(text)+lines), 0o644))
	f.snapshot = takeSnapshot(t, f.Base)
}

// Changed says what is different outside since the fixtures were made, but for
// what a provider publishes of git: ghosts, too.
func (f *Fixtures) Changed(t testing.TB, o Options) []string {
	t.Helper()
	return f.losses(t, o)
}

// Install copies a program to where the owner can start it and returns its
// path. The file is there until t's fixtures end.
func (f *Fixtures) Install(t testing.TB, program string) string {
	t.Helper()
	to := filepath.Join(filepath.Dir(f.Victim), filepath.Base(program))
	installing.Lock()
	defer installing.Unlock()
	if _, err := os.Stat(to); err == nil {
		return to
	}
	text, err := os.ReadFile(program)
	check(t, err)
	check(t, writeProgram(to, text))
	return to
}

// installing keeps tests that run beside each other from starting a program
// that another one has written in part.
var installing sync.Mutex

// writeProgram writes one that can be executed at once: a process that is forked
// meanwhile would hold the file open for writing until it has become another
// (ETXTBSY).
func writeProgram(path string, text []byte) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	return os.WriteFile(path, text, 0o755)
}
