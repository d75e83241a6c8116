package dockerapi

import (
	"context"
	"crypto/rand"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// maxVolumes bounds named volumes that exist at a time.
const maxVolumes = 64

type volumeRequest struct {
	Name   string
	Driver string
	Labels map[string]string
}

// volumeMade is what the engine is told of a volume.
type volumeMade struct {
	Name   string
	Driver string
	Labels map[string]string
}

// volume returns the engine's name of one of the session's volumes, which is
// made if it is not there.
func (b *Broker) volume(ctx context.Context, name string, labels map[string]string) (string, error) {
	b.making.Lock() // so that requests at the same time don't make more than there may be
	defer b.making.Unlock()
	b.mu.Lock()
	known, count, closed := b.volumes[name], len(b.volumes), b.closed
	b.mu.Unlock()
	switch {
	case known != "":
		return known, nil
	case closed:
		return "", refuse(RuleConflict, "", "the session ends")
	case count >= maxVolumes:
		return "", refuse(RuleLimit, "remove some", "%d volumes of this session exist", count)
	}
	if err := b.keepWatch(); err != nil {
		return "", err
	}
	real := b.prefix() + name
	m := message{method: http.MethodPost, path: "/volumes/create", body: volumeMade{Name: real, Driver: "local", Labels: b.labels(labels, RoleChild)}}
	if err := b.engine.do(context.WithoutCancel(ctx), m, nil); err != nil {
		return "", err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.volumes[name] = real
	return real, nil
}

func (b *Broker) createVolume(w http.ResponseWriter, r *http.Request, _ *call) error {
	var req volumeRequest
	if err := readBody(r, &req); err != nil {
		return err
	}
	if !oneOf(req.Driver, "", "local") {
		return refuse(RuleMount, "leave it out", "the volume driver %.50q can mount anything", req.Driver)
	}
	if req.Name == "" {
		req.Name = strings.ToLower(rand.Text())
	}
	if !containerName().MatchString(req.Name) {
		return bad("%.100q is no name of a volume", req.Name)
	}
	if err := checkLabels(req.Labels); err != nil {
		return err
	}
	if _, err := b.volume(r.Context(), req.Name, req.Labels); err != nil {
		return err
	}
	v, err := b.lookVolume(r.Context(), req.Name)
	if err == nil {
		writeJSON(w, http.StatusCreated, v)
	}
	return err
}

// lookVolume is a volume as the guest is shown it.
func (b *Broker) lookVolume(ctx context.Context, name string) (map[string]any, error) {
	b.mu.Lock()
	real := b.volumes[name]
	b.mu.Unlock()
	if real == "" {
		return nil, missing("volume", name)
	}
	var full map[string]any
	if err := b.engine.do(ctx, message{method: http.MethodGet, path: "/volumes/" + real}, &full); err != nil {
		return nil, err
	}
	out := only(full, "CreatedAt", "Scope", "Driver")
	out["Name"], out["Mountpoint"], out["Options"], out["Labels"] = name, "", nil, guestLabels(texts(full["Labels"]))
	return out, nil
}

// guestLabels are those that are not Bawn's own.
func guestLabels(labels map[string]string) map[string]string {
	out := maps.Clone(labels)
	maps.DeleteFunc(out, func(name, _ string) bool { return strings.HasPrefix(name, labelPrefix) })
	return out
}

func (b *Broker) inspectVolume(w http.ResponseWriter, r *http.Request, c *call) error {
	v, err := b.lookVolume(r.Context(), c.names[0])
	if err == nil {
		writeJSON(w, http.StatusOK, v)
	}
	return err
}

func (b *Broker) volumeNames() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Sorted(maps.Keys(b.volumes))
}

func (b *Broker) listVolumes(w http.ResponseWriter, r *http.Request, c *call) error {
	if err := c.knownFilters("name", "label", "driver", "dangling"); err != nil {
		return err
	}
	list := []map[string]any{}
	for _, name := range b.volumeNames() {
		v, err := b.lookVolume(r.Context(), name)
		if err != nil {
			continue // it was removed
		}
		labels, _ := v["Labels"].(map[string]string)
		if c.labelled(labels) && c.wants("name", func(f string) bool { return strings.Contains(name, f) }) {
			list = append(list, v)
		}
	}
	writeJSON(w, http.StatusOK, map[string]any{"Volumes": list, "Warnings": nil})
	return nil
}

func (b *Broker) removeVolume(w http.ResponseWriter, r *http.Request, c *call) error {
	if err := b.dropVolume(r.Context(), c.names[0]); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (b *Broker) dropVolume(ctx context.Context, name string) error {
	b.mu.Lock()
	real := b.volumes[name]
	b.mu.Unlock()
	if real == "" {
		return missing("volume", name)
	}
	if err := b.engine.do(ctx, message{method: http.MethodDelete, path: "/volumes/" + real}, nil); err != nil && !gone(err) {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.volumes, name)
	return nil
}

// pruneVolumes removes those that no container uses.
func (b *Broker) pruneVolumes(w http.ResponseWriter, r *http.Request, c *call) error {
	if err := c.knownFilters("all"); err != nil {
		return err
	}
	deleted := []string{}
	for _, name := range b.volumeNames() {
		if b.dropVolume(r.Context(), name) == nil {
			deleted = append(deleted, name)
		}
	}
	writeJSON(w, http.StatusOK, map[string]any{"VolumesDeleted": deleted, "SpaceReclaimed": 0})
	return nil
}
