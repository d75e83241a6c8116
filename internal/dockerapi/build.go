package dockerapi

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/bawn-dev/bawn/internal/dockerapi/dockerfile"
)

// Bounds of builds.
const (
	maxBuilds = 4  // of a session at a time; others wait
	maxImages = 64 // that a session has built
	maxArgs   = 256
	maxAfter  = 1 << 20 // bytes after the end of a context
)

// A build makes an image of a Dockerfile, with containers of the session: each
// RUN is one, judged, limited and in the network like every other. The engine's
// own builder has another network, more capabilities, and fetches what a
// Dockerfile names.
type build struct {
	*Broker
	ctx      context.Context
	say      func(any) error
	marks    map[string]string // labels of the result
	given    map[string]string // build arguments
	global   map[string]string // of ARG before the first FROM
	isolated bool
	quiet    bool // the ID of the image is all that is said
	context  *fileSet
	contents *contents // of all files that are copied
	kept     load      // of these
	copies   int       // names of these that are copied
	stages   []*stage
	tags     []string // of the engine, to be removed in the end
}

// A stage is what follows one FROM.
type stage struct {
	name   string
	base   string // the name in its FROM, which questions show
	image  string // by which the engine knows what there is so far
	config imageConfig
	args   map[string]string
	copies []fileCopy // that are not in image yet
}

// imageConfig is what an image says of its containers.
type imageConfig struct {
	common
	ExposedPorts map[string]struct{}
	OnBuild      []string `json:",omitempty"`
}

// A buildLine is one line of a build's answer.
type buildLine struct {
	Stream string            `json:"stream,omitempty"`
	Aux    map[string]string `json:"aux,omitempty"`
	Error  string            `json:"error,omitempty"`
	Detail map[string]string `json:"errorDetail,omitempty"`
}

func (b *Broker) buildImage(w http.ResponseWriter, r *http.Request, c *call) error {
	select {
	case b.building <- struct{}{}:
		defer func() { <-b.building }()
	case <-r.Context().Done():
		return r.Context().Err()
	}
	d, list, tags, err := b.newBuild(r, c)
	if d != nil {
		defer d.end()
	}
	if err != nil {
		return err
	}
	if err := b.check(r.Context(), toolKind, toolCall, "docker:build", append([]string{cmp.Or(c.query["dockerfile"], "Dockerfile")}, tags...)...); err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	enc := json.NewEncoder(w)
	var mu sync.Mutex
	d.say = func(v any) error {
		mu.Lock()
		defer mu.Unlock()
		err := enc.Encode(v)
		w.(http.Flusher).Flush()
		return err
	}
	if err := d.run(list, c.query["target"], tags); err != nil {
		text := b.own(b.buildError(r, err))
		_ = d.say(buildLine{Error: text, Detail: map[string]string{"message": text}}) // the guest may be gone
	}
	return nil
}

// buildError is what a guest is told of an error.
func (b *Broker) buildError(r *http.Request, err error) string {
	var refusal *Refusal
	var engine *engineError
	var step *stepError
	var line *dockerfile.Error
	switch {
	case errors.As(err, &refusal):
		refusal.What = "POST /build"
		if b.o.Refused != nil && refusal.Status == http.StatusForbidden {
			b.o.Refused(*refusal)
		}
		return refusal.Error()
	case errors.As(err, &engine):
		return engine.Message
	case errors.As(err, &step), errors.As(err, &line):
		return err.Error()
	case r.Context().Err() != nil:
		return "the build was given up"
	}
	b.log("%s %.200s: %v", r.Method, r.RequestURI, err)
	return "bawn: the engine does not do its part (rule " + RuleEngine + "); see the session's log outside"
}

// A stepError is one of the guest's own making.
type stepError struct{ text string }

func (e *stepError) Error() string { return e.text }

// newBuild reads the request. What it returns has to be ended also beside an
// error.
func (b *Broker) newBuild(r *http.Request, c *call) (*build, []dockerfile.Instruction, []string, error) {
	d := &build{Broker: b, ctx: r.Context(), global: map[string]string{}}
	if b.o.Dir == "" {
		return nil, nil, nil, refuse(RuleImage, "build it outside (docker build)", "this session has no place for a build's context")
	}
	tags, err := d.query(r, c)
	if err != nil {
		return nil, nil, nil, err
	}
	if err := b.keepWatch(); err != nil {
		return nil, nil, nil, err
	}
	if d.contents, err = newContents(b.o.Dir, func(more load) error { return b.store.take(&d.kept, more) }); err != nil {
		return d, nil, nil, err
	}
	if d.context, err = d.fileSet(r.Body); err != nil {
		return d, nil, nil, err
	}
	if err := readEnd(r.Body); err != nil {
		return d, nil, nil, err
	}
	text, err := d.context.text(cmp.Or(c.query["dockerfile"], "Dockerfile"), dockerfile.MaxBytes)
	if err != nil {
		return d, nil, nil, err
	}
	list, err := dockerfile.Read(text)
	if err != nil {
		return d, nil, nil, bad("%v", err)
	}
	return d, list, tags, nil
}

// fileSet keeps an archive for the time of the build.
func (d *build) fileSet(from io.Reader) (*fileSet, error) {
	leave, err := d.store.enter(d.ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	return d.contents.read(from)
}

// readEnd reads what follows an archive: before the body has ended the server does
// not see that the guest is gone.
func readEnd(body io.Reader) error {
	n, err := io.Copy(io.Discard, io.LimitReader(body, maxAfter))
	if n == maxAfter || err != nil {
		return refuse(RuleBody, "", "the body does not end after the archive").status(http.StatusBadRequest)
	}
	return nil
}

// query reads the parameters.
func (d *build) query(r *http.Request, c *call) (tags []string, err error) {
	all := r.URL.Query()
	if v := c.query["version"]; !oneOf(v, "", "1") {
		return nil, refuse(RuleImage, "set DOCKER_BUILDKIT=0", "BuildKit is not served: its sessions reach files, secrets and agents of the client; the classic builder is")
	}
	if !oneOf(c.query["networkmode"], "", "default", "none") {
		return nil, refuse(RuleNetwork, "leave it out", "the network mode %.50q: steps of a build are in the session's network", c.query["networkmode"])
	}
	d.isolated, d.quiet = c.query["networkmode"] == "none", c.flag("q")
	for _, name := range strings.Fields(buildUnserved) {
		for _, v := range all[name] {
			if !off(v) && !oneOf(v, "null", "[]", "{}") {
				return nil, refuse(RuleQuery, "leave it out", "the parameter %.50q of a build", name)
			}
		}
	}
	if d.given, err = readTexts(c.query["buildargs"]); err != nil {
		return nil, err
	}
	if d.marks, err = readTexts(c.query["labels"]); err != nil {
		return nil, err
	}
	if err := checkLabels(d.marks); err != nil {
		return nil, err
	}
	if t := c.query["t"]; t != "" {
		t, err := fullName(t)
		if err != nil {
			return nil, err
		}
		tags = append(tags, t)
	}
	return tags, nil
}

// readTexts reads a JSON object of strings. null is one that is not set.
func readTexts(text string) (map[string]string, error) {
	if oneOf(text, "", "null") {
		return map[string]string{}, nil
	}
	var f struct{ Texts map[string]*string }
	if err := decode([]byte(`{"Texts":`+text+`}`), &f); err != nil {
		return nil, err
	}
	out := map[string]string{}
	for name, v := range f.Texts {
		if v != nil {
			out[name] = *v
		}
	}
	if len(out) > maxArgs {
		return nil, refuse(RuleLimit, "", "more than %d build arguments or labels", maxArgs)
	}
	return out, checkArgs(slices.Collect(maps.Values(out)))
}

// end gives back what the build held.
func (d *build) end() {
	if d.contents != nil {
		d.contents.close()
	}
	d.store.give(d.kept)
	for _, tag := range d.tags {
		if err := d.removeTag(context.Background(), tag); err != nil {
			d.log("remove an image of a build's step: %v", err)
		}
	}
}

// run does all steps, and gives the result its name.
func (d *build) run(list []dockerfile.Instruction, target string, tags []string) error {
	for n := range list {
		i := &list[n]
		if err := d.ctx.Err(); err != nil {
			return err
		}
		if err := d.print("Step %d/%d : %s %s\n", n+1, len(list), i.Name, i.Rest); err != nil {
			return err
		}
		if i.Name == "FROM" && target != "" && len(d.stages) > 0 && strings.EqualFold(d.stages[len(d.stages)-1].name, target) {
			break
		}
		if err := d.step(i); err != nil {
			return err
		}
	}
	if len(d.stages) == 0 {
		return &stepError{"the Dockerfile has no FROM"}
	}
	last := d.stages[len(d.stages)-1]
	if target != "" && !strings.EqualFold(last.name, target) {
		return &stepError{fmt.Sprintf("the Dockerfile has no stage %.50q", target)}
	}
	maps.Copy(last.config.labelled(), d.marks)
	id, err := d.finish(last)
	if err != nil {
		return err
	}
	kept := d.tags[len(d.tags)-1]
	if err := d.keepImage(id, kept, tags); err != nil {
		return err
	}
	d.tags = d.tags[:len(d.tags)-1]
	return d.done(id, tags)
}

// done says what was made.
func (d *build) done(id string, tags []string) error {
	err := d.say(buildLine{Aux: map[string]string{"ID": id}})
	if d.quiet {
		return errors.Join(err, d.say(buildLine{Stream: id + "\n"}))
	}
	err = errors.Join(err, d.print("Successfully built %.12s\n", strings.TrimPrefix(id, "sha256:")))
	for _, t := range tags {
		err = errors.Join(err, d.print("Successfully tagged %s\n", t))
	}
	return err
}

// print says how the build goes.
func (d *build) print(format string, args ...any) error {
	if d.quiet {
		return nil
	}
	return d.say(buildLine{Stream: fmt.Sprintf(format, args...)})
}

// labelled is the labels, which can be written.
func (c *imageConfig) labelled() map[string]string {
	if c.Labels == nil {
		c.Labels = map[string]string{}
	}
	return c.Labels
}

// newTag is a name for an image at the engine, which ends with the build or the
// session.
func (d *build) newTag() (repo, tag string) {
	repo, tag = d.prefix()+"built", strings.ToLower(rand.Text())
	d.tags = append(d.tags, repo+":"+tag)
	return repo, tag
}
