package docker

import (
	"archive/tar"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/moby/moby/client"
	"golang.org/x/sys/unix"

	"github.com/bawn-dev/bawn/internal/redact"
	"github.com/bawn-dev/bawn/internal/sandbox/docker/workcopy"
	"github.com/bawn-dev/bawn/internal/sandbox/inside"
	"github.com/bawn-dev/bawn/internal/sandbox/native"
)

// away is what a session has on another machine, and of its workspace here.
type away struct {
	setting Setting
	name    string   // begins the names of its volumes
	volumes []string // that were made
	copier  string   // the container through which files are copied
	root    *os.File // the workspace
	taken   workcopy.Manifest
	untaken []workcopy.Left
	started bool // the guest has had the copy
	gate    *gate
}

// How slow a copy may be: for how long nothing may move, and how long all may take,
// which is some time and what the bytes that have come take by a bad link. So one
// that drips ends soon, and how long any takes follows from the limit of bytes.
const (
	copyIdle  = 60 * time.Second
	copyStart = 5 * time.Minute
	copyRate  = 64 << 10 // bytes per second
)

// A pace is those.
type pace struct {
	idle, start time.Duration
	rate        int64
}

// most is how long n bytes may take.
func (p pace) most(n int64) time.Duration {
	return p.start + time.Duration(float64(n)/float64(p.rate)*float64(time.Second))
}

// takeAway makes what the session has on the engine's machine, and copies there
// what it needs.
func (g *guest) takeAway(ctx context.Context) error {
	a := g.away
	a.name = g.plan.Name + "-" + strings.ToLower(rand.Text()[:10])
	if err := g.openWorkspace(); err != nil {
		return err
	}
	if err := g.openGate(ctx); err != nil {
		return err
	}
	labels := g.maker.labels(g.plan.Inside.Session, roleCopy)
	for _, v := range []string{workspaceVolume, ownVolume} {
		name := a.name + strings.TrimPrefix(v, sessionPlace)
		if err := g.engine.makeVolume(ctx, name, labels); err != nil {
			return err
		}
		a.volumes = append(a.volumes, name)
	}
	options, err := g.plan.copier().create(a.name, "", labels)
	if err != nil {
		return err
	}
	options.Name = a.name + "-copy"
	if a.copier, err = g.engine.create(ctx, options); err != nil {
		return err
	}
	if err := g.send(ctx, "copy Bawn's own files there", g.packOwn); err != nil {
		return err
	}
	return g.send(ctx, "copy the workspace there", g.packWorkspace)
}

// openWorkspace opens the workspace that was planned.
func (g *guest) openWorkspace() error {
	r := g.plan.Remote
	fd, err := unix.Open(r.From, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open the workspace %q: %w", r.From, err)
	}
	g.away.root = os.NewFile(uintptr(fd), r.From)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if (native.Identity{Dev: st.Dev, Ino: st.Ino}) != r.id {
		return fmt.Errorf("the workspace %q is not the one that was planned: it was replaced meanwhile", r.From)
	}
	return nil
}

// send has the engine unpack what pack writes. It may take as long as enough moves.
func (g *guest) send(parent context.Context, what string, pack func(*tar.Writer) error) error {
	ctx, watch := g.engine.pace.watch(parent)
	defer watch.stop()
	r, w := io.Pipe()
	packed := make(chan error, 1)
	go func() {
		to := tar.NewWriter(io.MultiWriter(watch, w))
		err := pack(to)
		if err == nil {
			err = to.Close()
		}
		packed <- err
		w.CloseWithError(err)
	}()
	_, err := g.engine.client.CopyToContainer(ctx, g.away.copier, client.CopyToContainerOptions{DestinationPath: copyPlace, Content: r})
	r.CloseWithError(io.ErrClosedPipe)
	perr := <-packed
	if perr != nil && !errors.Is(perr, io.ErrClosedPipe) {
		return fmt.Errorf("%s: %w", what, perr)
	}
	if err != nil {
		return g.engine.failed(what, stalled(ctx, parent, err))
	}
	return perr
}

// stalled says that too little has moved, where that is why.
func stalled(ctx, parent context.Context, err error) error {
	if ctx.Err() != nil && parent.Err() == nil {
		return fmt.Errorf("%w: %w", context.Cause(ctx), context.DeadlineExceeded)
	}
	return err
}

// A watch ends a copy that is too slow. It is written what moves.
type watch struct {
	pace
	began  time.Time
	n      int64
	timer  *time.Timer
	cancel context.CancelCauseFunc
}

// watch begins one.
func (p pace) watch(parent context.Context) (context.Context, *watch) {
	ctx, cancel := context.WithCancelCause(parent)
	w := &watch{pace: p, began: time.Now(), cancel: cancel}
	w.timer = time.AfterFunc(p.idle, func() { cancel(fmt.Errorf("nothing has moved for %v", p.idle)) })
	return ctx, w
}

// Write puts the end of patience off.
func (w *watch) Write(b []byte) (int, error) {
	w.n += int64(len(b))
	if took := time.Since(w.began); took > w.most(w.n) {
		err := fmt.Errorf("%d KiB in %v are too few", w.n>>10, took.Round(time.Second))
		w.cancel(err)
		return 0, err
	}
	w.timer.Reset(w.idle)
	return len(b), nil
}

func (w *watch) stop() {
	w.timer.Stop()
	w.cancel(nil)
}

// packOwn writes what the guest finds below /run/bawn.
func (g *guest) packOwn(to *tar.Writer) error {
	made := map[string]bool{}
	dir := func(rel string) error {
		for _, d := range ancestors(rel) {
			if !made[d] {
				made[d] = true
				if err := to.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: path.Join(copyOwn, d) + "/", Mode: 0o755}); err != nil {
					return err
				}
			}
		}
		return nil
	}
	list := slices.Clone(g.plan.Remote.Files)
	sources, targets := []string{g.away.setting.Program}, []string{programPlace}
	for _, f := range list {
		sources, targets = append(sources, f.Source), append(targets, f.Target)
	}
	for i, source := range sources {
		rel := strings.TrimPrefix(targets[i], ownPlace+"/")
		if err := dir(path.Dir(rel)); err != nil {
			return err
		}
		if err := packFile(to, source, path.Join(copyOwn, rel), i == 0); err != nil {
			return fmt.Errorf("%q, which the guest finds at %q: %w", source, targets[i], err)
		}
	}
	return nil
}

// ancestors are rel and the directories above it, outermost first.
func ancestors(rel string) (list []string) {
	for ; rel != "."; rel = path.Dir(rel) {
		list = append(list, rel)
	}
	list = append(list, ".")
	slices.Reverse(list)
	return list
}

// packFile writes one file, or a directory of files, which everybody may read.
func packFile(to *tar.Writer, source, name string, program bool) error {
	f, err := os.OpenFile(source, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return err
	}
	if fi.IsDir() {
		p := &workcopy.Packer{To: to, Prefix: name, Limits: workcopy.Limits{Bytes: maxOwn, Entries: 1000}}
		_, _, err := p.Pack(f)
		return err
	}
	mode := int64(0o444)
	if program {
		mode = 0o555
	}
	if !fi.Mode().IsRegular() {
		return errors.New("it is no file")
	}
	if err := to.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: fi.Size(), Mode: mode}); err != nil {
		return err
	}
	_, err = io.CopyN(to, f, fi.Size())
	return err
}

// maxOwn bounds a directory that is shown to the guest, bytes.
const maxOwn = 64 << 20

// packWorkspace writes the workspace.
func (g *guest) packWorkspace(to *tar.Writer) error {
	l, r := g.plan.layout, g.plan.Remote
	p := &workcopy.Packer{
		To: to, Prefix: copyWorkspace, UID: l.uid, GID: l.gid, Rules: workcopy.Rules{Hidden: r.Hidden}, Limits: r.limits(),
		Progress: func(n int64) { g.away.report("copying the workspace to the engine: %d MiB so far", n>>20) },
	}
	taken, left, err := p.Pack(g.away.root)
	if err != nil {
		return err
	}
	g.away.taken, g.away.untaken = taken, left
	var bytes int64
	for _, e := range taken {
		bytes += e.Size
	}
	g.away.report("copied the workspace to the engine: %d files and directories, %d KiB", len(taken), bytes>>10)
	g.away.leftOut("not copied", left)
	// What Bawn itself would have shown in /etc an image without names and hosts does not miss.
	missed := slices.DeleteFunc(slices.Clone(r.LeftOut), func(t string) bool { return below(t, "/etc") })
	if len(missed) > 0 {
		g.away.report("not on the engine's machine, so not shown: %s", redact.Visible(strings.Join(missed, ", ")))
	}
	return nil
}

// report tells the human one line.
func (a *away) report(format string, args ...any) {
	if a.setting.Report != nil {
		fmt.Fprintf(a.setting.Report, "bawn: "+format+"\n", args...)
	}
}

// maxTold is how many names are told.
const maxTold = 20

// leftOut tells what was not copied.
func (a *away) leftOut(what string, left []workcopy.Left) {
	for i, l := range left {
		if i == maxTold {
			a.report("%s: %d more", what, len(left)-i)
			return
		}
		a.report("%s: %s: %s", what, redact.Visible(l.Path), redact.Visible(l.Why))
	}
}

// seenFar wants the guest to be what was planned, by what a command of ours in it
// says, before there is any of the guest's.
func (g *guest) seenFar() error {
	s, err := g.look(inside.Question{Paths: []string{g.plan.layout.guest, programPlace}})
	if err != nil {
		return err
	}
	if err := g.agree(s.Status, g.plan.Inside.UID.Inside, g.plan.Inside.GID.Inside); err != nil {
		return err
	}
	if len(s.Stamps) != 2 || s.Stamps[0].Errno != 0 || !s.Stamps[0].Dir || s.Stamps[1].Errno != 0 || s.Stamps[1].Dir {
		return fmt.Errorf("the container does not have what was copied there: %+v", s.Stamps)
	}
	g.away.started = true
	return nil
}

// bringBack copies back what the guest has changed, and removes what the session
// has on the engine's machine. The container has ended: what comes is final. Where
// it does not come, it is left there for somebody to fetch.
func (g *guest) bringBack() error {
	a := g.away
	var errs []error
	if a.gate != nil {
		errs = append(errs, a.gate.close())
	}
	keep := false
	if a.started && !g.plan.Remote.ReadOnly {
		if err := g.fetch(); err != nil {
			err = fmt.Errorf("the workspace was not copied back: %w", err)
			a.report("%s", redact.Visible(err.Error()))
			a.report("what the session has made stays on the engine's machine until the next session there: docker cp %s-copy:%s DIRECTORY", a.name, path.Join(copyPlace, copyWorkspace))
			errs, keep = append(errs, err), true
		}
	}
	if a.root != nil {
		errs = append(errs, a.root.Close())
	}
	if keep {
		return errors.Join(errs...)
	}
	if a.copier != "" {
		errs = append(errs, g.engine.remove(context.Background(), a.copier))
	}
	for _, v := range a.volumes {
		errs = append(errs, g.engine.removeVolume(context.Background(), v))
	}
	return errors.Join(errs...)
}

// fetch has the engine pack the workspace, keeps that, and carries out what of it
// may be.
func (g *guest) fetch() error {
	a, r := g.away, g.plan.Remote
	spool, err := a.spool()
	if err != nil {
		return err
	}
	defer spool.Close()
	size, err := g.receive(spool)
	if err != nil {
		return err
	}
	got, err := workcopy.Read(spool, size, copyWorkspace, r.limits())
	if err != nil {
		return err
	}
	steps, left := workcopy.Compare(a.taken, got, g.plan.rules(a.taken, a.alsoHere(got), got))
	done, more := workcopy.Apply(a.root, spool, steps)
	a.report("copied the workspace back: %d changes", done)
	a.leftOut("not copied back", append(left, more...))
	return nil
}

// gitNames are those by which a directory becomes git's, and what git would obey
// there.
var gitNames = []string{"HEAD", "objects", "refs", "commondir", "config", "config.worktree", "modules", "worktrees", "hooks", "info"}

// alsoHere is what is here and was not taken: of git's names also such as somebody
// on this machine has made meanwhile beside one that comes.
func (a *away) alsoHere(comes *workcopy.Contents) []workcopy.Left {
	list, seen := slices.Clone(a.untaken), map[string]bool{}
	for rel := range comes.At {
		dir, name := path.Split(rel)
		if seen[dir] || !slices.ContainsFunc(gitNames, func(n string) bool { return strings.EqualFold(n, name) }) {
			continue
		}
		seen[dir] = true
		for _, n := range gitNames {
			var st unix.Stat_t
			if _, taken := a.taken[dir+n]; taken {
				continue
			}
			if err := unix.Fstatat(int(a.root.Fd()), dir+n, &st, unix.AT_SYMLINK_NOFOLLOW); !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.ENOTDIR) {
				list = append(list, workcopy.Left{Path: dir + n})
			}
		}
	}
	return list
}

// spool is a file without a name.
func (a *away) spool() (*os.File, error) {
	dir := a.setting.Runtime
	if a.setting.Cache != "" { // on a disk
		dir = filepath.Dir(a.setting.Cache)
	}
	f, err := os.CreateTemp(dir, "returned-*")
	if err != nil {
		return nil, err
	}
	return f, os.Remove(f.Name())
}

// perEntry bounds what a stream has beside the bytes of files: headers, padding,
// long names.
const perEntry = 2 << 10

// receive copies what the engine has packed, no more than the limits allow.
func (g *guest) receive(spool *os.File) (int64, error) {
	const what = "copy the workspace back"
	ctx, watch := g.engine.pace.watch(context.Background())
	defer watch.stop()
	res, err := g.engine.client.CopyFromContainer(ctx, g.away.copier, client.CopyFromContainerOptions{SourcePath: path.Join(copyPlace, copyWorkspace)})
	if err != nil {
		return 0, g.engine.failed(what, stalled(ctx, context.Background(), err))
	}
	defer res.Content.Close()
	l := g.plan.Remote.limits()
	most := l.Bytes + int64(l.Entries)*perEntry
	n, err := io.Copy(io.MultiWriter(watch, spool), io.LimitReader(res.Content, most+1))
	if err != nil {
		return 0, g.engine.failed(what, stalled(ctx, context.Background(), err))
	}
	if n > most {
		return 0, fmt.Errorf("it has grown to more than %d MiB; allow more: remote_max_mb under [isolation.docker_options]", l.Bytes>>20)
	}
	return n, nil
}
