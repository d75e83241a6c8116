package dockerapi

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/sandbox/maker"
)

// imageFacts are what the broker wants to know of an image.
type imageFacts struct {
	ID     string `json:"Id"`
	Config struct {
		ExposedPorts map[string]struct{}
		Volumes      map[string]struct{}
		WorkingDir   string
		Labels       map[string]string
	}
}

// permitted says whether images of that name may be used.
func (b *Broker) permitted(name string) error {
	if !imageName(name) {
		return bad("%.100q is no name of an image", name)
	}
	return nil
}

// noImage is the answer to which clients react with a pull.
func noImage(name string) *Refusal {
	if hex := strings.TrimPrefix(name, "sha256:"); len(hex) >= 12 && strings.Trim(hex, "0123456789abcdef") == "" {
		return refuse(RuleImage, "name one of \"docker images\"", "No such image: %.200s", name).status(http.StatusNotFound)
	}
	return refuse(RuleImage, "fetch it outside (docker pull), or build it (docker build)", "No such image: %.200s", name).status(http.StatusNotFound)
}

// image returns a permitted image that is present.
func (b *Broker) image(ctx context.Context, name string) (*imageFacts, error) {
	if err := b.permitted(name); err != nil {
		return nil, err
	}
	f, err := b.facts(ctx, b.engineImage(name))
	if gone(err) || err == nil && b.ofAnother(f.Config.Labels) {
		return nil, noImage(name)
	}
	return f, err
}

// facts are those of an image that the engine calls so.
func (b *Broker) facts(ctx context.Context, name string) (*imageFacts, error) {
	var f imageFacts
	err := b.engine.do(ctx, message{method: http.MethodGet, path: "/images/" + escaped(name) + "/json"}, &f)
	if err == nil && f.ID == "" {
		err = refuse(RuleEngine, "", "the engine does not say which image %.200q is", name)
	}
	return &f, err
}

// escaped keeps the slashes of a name, and nothing else that a path knows.
func escaped(name string) string {
	parts := strings.Split(name, "/")
	for i := range parts {
		parts[i] = url.PathEscape(parts[i])
	}
	return strings.Join(parts, "/")
}

func (b *Broker) inspectImage(w http.ResponseWriter, r *http.Request, c *call) error {
	name := c.names[0]
	if err := b.permitted(name); err != nil {
		return err
	}
	facts, err := b.image(r.Context(), name)
	if err != nil {
		return err
	}
	var full map[string]any
	if err := b.engine.do(r.Context(), message{method: http.MethodGet, path: "/images/" + escaped(facts.ID) + "/json"}, &full); err != nil {
		return err
	}
	if config, _ := full["Config"].(map[string]any); b.builtHere(facts.ID) != nil && config != nil {
		config["Labels"] = guestLabels(texts(config["Labels"]))
		full["RepoTags"] = b.namesOf(facts.ID)
	}
	writeJSON(w, http.StatusOK, only(full, "Id", "RepoTags", "RepoDigests", "Parent", "Comment", "Created", "Author", "Config", "Architecture", "Variant", "Os", "Size", "VirtualSize", "RootFS"))
	return nil
}

// only keeps objects with one of these names.
func only(m map[string]any, names ...string) map[string]any {
	out := map[string]any{}
	for _, n := range names {
		if v, ok := m[n]; ok {
			out[n] = v
		}
	}
	return out
}

// listImages lists what may be used.
func (b *Broker) listImages(w http.ResponseWriter, r *http.Request, c *call) error {
	if err := c.knownFilters("reference", "label", "dangling"); err != nil {
		return err
	}
	var all []map[string]any
	if err := b.engine.images(r.Context(), nil, &all); err != nil {
		return err
	}
	list := []map[string]any{}
	for _, image := range all {
		tags := []string{}
		labels, id := texts(image["Labels"]), ""
		if id, _ = image["Id"].(string); b.builtHere(id) != nil {
			image["RepoTags"] = anyList(b.namesOf(id))
		} else if _, made := labels[maker.LabelSession]; made {
			continue // of another session, or a step of a build
		}
		for _, t := range textList(image["RepoTags"]) {
			if b.permitted(t) == nil && c.wants("reference", func(f string) bool { return t == f || strings.HasPrefix(t, f+":") }) {
				tags = append(tags, t)
			}
		}
		if len(tags) == 0 || !c.labelled(labels) || !c.wants("dangling", func(f string) bool { return f == "false" || f == "0" }) {
			continue
		}
		kept := only(image, "Id", "ParentId", "Created", "Size", "SharedSize", "VirtualSize", "Labels", "Containers")
		kept["Labels"] = guestLabels(labels)
		kept["RepoTags"], kept["RepoDigests"] = tags, []string{}
		list = append(list, kept)
	}
	writeJSON(w, http.StatusOK, list)
	return nil
}

func anyList(list []string) (out []any) {
	for _, s := range list {
		out = append(out, s)
	}
	return out
}

func textList(v any) []string {
	var out []string
	list, _ := v.([]any)
	for _, e := range list {
		if s, ok := e.(string); ok {
			out = append(out, s)
		}
	}
	return out
}

func texts(v any) map[string]string {
	out := map[string]string{}
	m, _ := v.(map[string]any)
	for name, e := range m {
		if s, ok := e.(string); ok {
			out[name] = s
		}
	}
	return out
}

// pullImage has the engine fetch an image. It does so from the host's network,
// so the guard is asked about the registry as about any other host.
func (b *Broker) pullImage(w http.ResponseWriter, r *http.Request, c *call) error {
	name := c.query["fromImage"]
	if c.query["fromSrc"] != "" || name == "" {
		return refuse(RuleImage, "", "images can't be made here, only fetched by name")
	}
	if tag := c.query["tag"]; strings.HasPrefix(tag, "sha256:") {
		name += "@" + tag
	} else if tag != "" {
		name += ":" + tag
	}
	if err := b.permitted(name); err != nil {
		return err
	}
	if !b.o.Pull {
		return refuse(RuleImage, "fetch it outside (docker pull), or name one that is present", "the image %.200q is not fetched: the engine would do it from the host's network, and this session has only images that are present", name)
	}
	if err := b.check(r.Context(), bawn.Network, bawn.Connect, net.JoinHostPort(registry(name), "443"), "docker", "pull", name); err != nil {
		return err
	}
	resp, err := b.engine.stream(r.Context(), message{method: http.MethodPost, path: "/images/create", query: url.Values{"fromImage": {name}}})
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	passOn(w, resp)
	return nil
}

// registry is the host that a name is fetched from (distribution/reference).
func registry(name string) string {
	first, rest, ok := strings.Cut(name, "/")
	if !ok || rest == "" || first != "localhost" && !strings.ContainsAny(first, ".:") {
		return "registry-1.docker.io"
	}
	host, _, err := net.SplitHostPort(first)
	if err != nil {
		return first
	}
	return host
}
