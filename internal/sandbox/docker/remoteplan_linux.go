package docker

import (
	"path"
	"slices"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"

	"github.com/bawn-dev/bawn/internal/sandbox/docker/workcopy"
	"github.com/bawn-dev/bawn/internal/sandbox/native"
)

// maxRemoteFiles is how many names a workspace may have that is copied.
const maxRemoteFiles = 500_000

// Where the container that copies has the volumes; nothing ever runs in it.
const (
	copyPlace     = "/bawn"
	copyWorkspace = "workspace"
	copyOwn       = "own"
)

// copier is the plan of the container through which files are copied.
func (p *Plan) copier() *Plan {
	h := &container.HostConfig{
		NetworkMode: "none", CapDrop: []string{"ALL"}, CapAdd: []string{}, SecurityOpt: []string{"no-new-privileges"}, LogConfig: p.Host.LogConfig, RestartPolicy: p.Host.RestartPolicy,
		IpcMode: container.IPCModePrivate, CgroupnsMode: container.CgroupnsModePrivate, UsernsMode: p.Host.UsernsMode, // owners are those of the session's
		Mounts: []mount.Mount{volumeAt(workspaceVolume, path.Join(copyPlace, copyWorkspace), false), volumeAt(ownVolume, path.Join(copyPlace, copyOwn), false)},
	}
	c := &container.Config{
		Image: p.Container.Image, User: p.Container.User, Entrypoint: []string{programPlace}, Cmd: []string{}, Env: []string{}, Labels: map[string]string{},
		Healthcheck: p.Container.Healthcheck,
	}
	return &Plan{ImageName: p.ImageName, Name: p.Name + "-copy", Container: c, Host: h, Inside: &native.Plan{Session: p.Inside.Session}, role: roleCopy}
}

// rules are those by which a workspace comes back: of the plan's places, as a
// supervisor would have ruled on them. The warden knows all that is here, taken or
// not, and all that comes.
func (p *Plan) rules(here workcopy.Manifest, untaken []workcopy.Left, comes *workcopy.Contents) workcopy.Rules {
	w := native.NewWarden(p.Inside)
	at := func(rel string) string { return path.Join(p.layout.guest, rel) }
	for rel, e := range here {
		w.Holds(at(rel), e.Kind == workcopy.Dir)
	}
	for _, rel := range p.Remote.Hidden {
		w.Holds(at(rel), false)
	}
	for _, l := range untaken {
		w.Holds(at(l.Path), false)
	}
	for rel, e := range comes.At {
		w.Holds(at(rel), e.Kind == workcopy.Dir)
	}
	change := map[workcopy.Change]native.Change{workcopy.Put: native.ChangePut, workcopy.Make: native.ChangeMake, workcopy.PutLink: native.ChangeLink, workcopy.Remove: native.ChangeRemove}
	return workcopy.Rules{
		Hidden: p.Remote.Hidden, Kept: p.Remote.Kept,
		Refuses: func(c workcopy.Change, rel string, isDir bool) string {
			return w.Refuses(change[c], at(rel), isDir)
		},
	}
}

// limits bound the copies.
func (r *Remote) limits() workcopy.Limits {
	return workcopy.Limits{Bytes: r.MaxMB << 20, Entries: maxRemoteFiles}
}

// streamed reports whether the first process is spoken to by its standard streams.
func (p *Plan) streamed() bool { return p.sentry || p.Remote != nil }

// dialled are the ports that the guest's Dial may not have: they lead out of it.
func (r *Remote) dialled() []uint16 {
	if r == nil {
		return nil
	}
	return slices.Clone(r.Ports)
}
