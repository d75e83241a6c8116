package dockerapi

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/bawn-dev/bawn/internal/sandbox/maker"
)

// A builtImage is one that the session has built.
type builtImage struct {
	id   string // sha256:…
	tag  string // of the engine, by which it is removed
	name string // the guest's, with a tag; "" for none
}

// fullName is a guest's name for an image, with its tag.
func fullName(name string) (string, error) {
	rest := name[strings.LastIndexByte(name, '/')+1:]
	if !imageName(name) || strings.Contains(name, "@") || strings.HasPrefix(name, "sha256:") {
		return "", bad("%.100q is no name of an image", name)
	}
	if !strings.Contains(rest, ":") {
		name += ":latest"
	}
	return name, nil
}

// keepImage makes an image the session's. One that had a name loses it, as at an
// engine.
func (b *Broker) keepImage(id, tag string, names []string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return refuse(RuleConflict, "", "the session ends")
	}
	if len(b.images) >= maxImages {
		return refuse(RuleLimit, "remove some (docker rmi)", "%d images of this session exist", len(b.images))
	}
	one := &builtImage{id: id, tag: tag}
	if len(names) > 0 {
		one.name = names[0]
	}
	for _, other := range b.images {
		if other.name == one.name {
			other.name = ""
		}
	}
	b.images = append(b.images, one)
	return nil
}

// builtHere finds an image of the session by name, ID or beginning of an ID.
func (b *Broker) builtHere(name string) *builtImage {
	full, _ := fullName(name)
	id := strings.TrimPrefix(name, "sha256:")
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, one := range b.images {
		if full != "" && one.name == full {
			return one
		}
	}
	for _, one := range b.images {
		if len(id) >= 12 && strings.HasPrefix(strings.TrimPrefix(one.id, "sha256:"), id) {
			return one
		}
	}
	return nil
}

// engineImage is the engine's name of what a guest calls by this name.
func (b *Broker) engineImage(name string) string {
	if one := b.builtHere(name); one != nil {
		return one.id
	}
	return name
}

// toldOf is what the guard is told of an image that a guest calls so: one of the guest's
// own may have the name of another.
func (b *Broker) toldOf(name string) string {
	if b.builtHere(name) != nil {
		return name + " (built in this session)"
	}
	return name
}

// ofAnother reports whether labels are those of an image that another session
// has built.
func (b *Broker) ofAnother(labels map[string]string) bool {
	session, ok := labels[maker.LabelSession]
	return ok && session != b.o.Session.ID
}

// namesOf are the guest's names of an image of the session.
func (b *Broker) namesOf(id string) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	names := []string{}
	for _, one := range b.images {
		if one.id == id && one.name != "" {
			names = append(names, one.name)
		}
	}
	return names
}

// removeImage removes an image that the session has built.
func (b *Broker) removeImage(w http.ResponseWriter, r *http.Request, c *call) error {
	one := b.builtHere(c.names[0])
	if one == nil {
		return refuse(RuleImage, "remove it outside (docker rmi)", "the image %.200q was not built in this session", c.names[0])
	}
	if err := b.removeTag(r.Context(), one.tag); err != nil {
		return err
	}
	b.mu.Lock()
	for n, other := range b.images {
		if other == one {
			b.images = append(b.images[:n:n], b.images[n+1:]...)
			break
		}
	}
	b.mu.Unlock()
	out := []map[string]string{{"Deleted": one.id}}
	if one.name != "" {
		out = append(out, map[string]string{"Untagged": one.name})
	}
	writeJSON(w, http.StatusOK, out)
	return nil
}

// removeTag removes a name of Bawn's from an image, and the image with its last.
func (b *Broker) removeTag(ctx context.Context, tag string) error {
	err := b.engine.do(context.WithoutCancel(ctx), message{method: http.MethodDelete, path: "/images/" + escaped(tag), query: url.Values{"force": {"1"}}, limit: createTime}, nil)
	if gone(err) {
		return nil
	}
	return err
}

// taggedImage is an image of the engine's list.
type taggedImage struct {
	RepoTags []string
	Labels   map[string]string
}

// removeImages removes the names that Bawn has given to images with all of these
// labels that dead agrees to.
func removeImages(ctx context.Context, e *engine, query url.Values, dead func(map[string]string) bool) error {
	var images []taggedImage
	if err := e.images(ctx, url.Values{"filters": query["filters"]}, &images); err != nil {
		return err
	}
	var list []labelled
	for _, i := range images {
		for _, t := range i.RepoTags {
			list = append(list, labelled{Name: t, Labels: i.Labels})
		}
	}
	return each(list, dead, func(l labelled) error {
		return e.do(ctx, message{method: http.MethodDelete, path: "/images/" + escaped(l.Name), query: url.Values{"force": {"1"}}, limit: createTime}, nil)
	})
}
