package supervise

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/bawn-dev/bawn/internal/linux/notify"
	"github.com/bawn-dev/bawn/internal/sandbox"
	"github.com/bawn-dev/bawn/internal/sandbox/layout"
)

// A Supervision decides the calls that a guest's seccomp filter holds (names of
// files, opens for writing, UNIX sockets), and keeps hidden places hidden.
type Supervision struct {
	super *supervisor
	// refresher keeps hidden places hidden, or is nil.
	refresher *refresher
	// files are closed in the end.
	files    []*os.File
	stopping sync.Once
}

// Supervise serves the listener of a guest's filter (seccomp.Guest(true)) until
// the last process under it has ended. root is an O_PATH of the guest's "/".
// It takes both files, which Close closes, and calls onDenial from any
// goroutine. The plan, by the provider that made the mounts, says:
//
//   - UID.Outside and GID.Outside: who the guest is on the host. The supervisor
//     does what it allows as that user, and without a capability.
//   - Mounts: where something is mounted, by guest's paths, and with KindTmpfs
//     and KindDev what is the guest's own, so that it may connect to sockets there.
//   - Protected, Projects, ExtraNames, OpenNames, InHome, Absent, Targets, Guarded, Owned, Denied, Unprotected: what is ruled on, by guest's paths.
//   - Sockets: targets of mounts marked WhyFile to which the guest may connect.
//   - Loopback: it has a network namespace, so that abstract names are its own.
//   - Limits.FileSizeMB.
//
// To become another user than the caller, the caller must be root.
//
// The guest's processes must be visible here (/proc), and this process must be allowed to
// read their memory: as the owner of their user namespace, or as their user if they are
// dumpable and no security module objects. Yama with kernel.yama.ptrace_scope of 1 or
// more allows it for descendants only. Memory that can't be read fails with EFAULT:
// nothing is allowed unseen.
//
// Without a user namespace of the guest's own that this process' user has made, three
// things are less than in a native sandbox. Keep can't enter the mounts. A guest's
// program that is not dumpable (it was executed without being readable) can name no file.
// Unless the caller is root, a bound socket is recognised by its name, because
// SIOCUNIXFILE needs CAP_NET_ADMIN. If a host program makes a socket in a writable place
// while the guest binds one, and renames it over the guest's in time, the guest may
// connect to it.
func Supervise(root, listener *os.File, plan *layout.Plan, onDenial func(sandbox.Denial)) *Supervision {
	at := int(root.Fd())
	names := layout.NewProtector(plan.Protected, plan.ExtraNames, plan.OpenNames)
	names.Absent, names.Targets, names.Guarded, names.Places = plan.Absent, plan.Targets, plan.Guarded, plan.InHome
	names.Owned, names.Projects, names.Denied, names.Open = plan.Owned, plan.Projects, layout.Patterns(plan.Denied), plan.Unprotected
	if plan.Rung == layout.RungLandlock {
		names.Only = plan.Landlock.Writable
	} else { // there, files made in a cache could be moved out of it
		names.Caches = layout.CacheMounts(plan.Mounts)
	}
	s := &Supervision{files: []*os.File{root, listener}, super: &supervisor{
		listener: notify.NewListener(listener), root: at, onDenial: onDenial, programs: newPrograms(plan.Holds), stop: make(chan struct{}), idle: make(chan detached),
		names: names, git: newGitMounts(at, plan.Mounts), pool: newGitPool(plan.Mounts), devices: givenDevices(plan), targets: targets(plan.Mounts), fileSize: plan.Limits.FileSizeMB << 20,
		uid: plan.UID.Outside, gid: plan.GID.Outside,
		linked:  fileSet{},
		umasks:  newUmasks(),
		links:   newLinkRule(plan, os.Geteuid()),
		sockets: &sockets{shown: shownSockets(plan), private: privateDevices(at, plan.Mounts), dir: plan.Tmp, bound: fileSet{}, ownNetwork: plan.Loopback, asRoot: os.Geteuid() == 0},
	}}
	if names.Only == nil {
		s.super.knownDirs = map[dirID]knownDir{}
	}
	s.super.run()
	return s
}

// A Lived watches a guest's processes and can end them.
type Lived interface {
	Done() <-chan struct{}
	// End ends every process of the guest, and does not wait for it.
	End()
}

// Keep keeps the plan's hidden places hidden while programs of the host replace
// them, and ends the guest where it can't. mounts is the guest's mount namespace,
// which Close closes; it must belong to a user namespace of the guest's own that
// the caller may enter. The guest's /dev must hold HiddenDir and HiddenFile. It
// is called once at most, before Close.
func (s *Supervision) Keep(mounts *os.File, plan *layout.Plan, guest Lived) {
	s.refresher = &refresher{
		root: s.super.root, mount: mounts, places: plan.Kept, again: plan.Again(), private: s.super.sockets.private, guest: guest,
		wake: make(chan struct{}), done: make(chan struct{}),
	}
	s.files = append(s.files, mounts)
	if err := s.super.pool.open(int(mounts.Fd())); err != nil {
		s.refresher.end(fmt.Errorf("find the guest's user namespace: %w", err))
	}
	go s.refresher.run()
}

// Stop begins the end: calls that wait are answered, and no place is kept any
// longer. It comes before the guest is ended, and may be called more than once.
func (s *Supervision) Stop() {
	s.stopping.Do(func() {
		close(s.super.stop)
		if s.refresher != nil {
			s.refresher.close()
		}
	})
}

// closePatience is how long the last process of a guest may take to end once it
// was killed.
const closePatience = 5 * time.Second

// Close stops, and waits until the guest's last process has ended, which
// somebody else sees to; then it closes the files. It errs, and leaves the files
// open, if that takes more than 5 s. It may be called more than once.
func (s *Supervision) Close() error {
	s.Stop()
	over := make(chan struct{})
	go func() {
		s.super.wait.Wait()
		close(over)
	}()
	select {
	case <-over:
	case <-time.After(closePatience):
		return errors.New("processes of the guest are still there")
	}
	s.super.pool.close()
	for _, f := range s.files {
		f.Close()
	}
	return nil
}

// Hits says why the guest was ended, if it was ended to keep a place hidden. It may be
// called for nil.
func (s *Supervision) Hits() []sandbox.Hit {
	if s == nil || s.refresher == nil {
		return nil
	}
	return s.refresher.hits()
}
