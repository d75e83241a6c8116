package dockerapi

import (
	"archive/tar"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bawn-dev/bawn/internal/dockerapi/dockerfile"
)

// step does one instruction.
func (d *build) step(i *dockerfile.Instruction) error {
	if len(d.stages) == 0 && i.Name == "ARG" {
		return d.arg(i, d.global, func(name string) string { return d.global[name] })
	}
	if i.Name == "FROM" {
		return d.from(i)
	}
	if len(d.stages) == 0 {
		return &dockerfile.Error{Line: i.Line, Why: "FROM comes first"}
	}
	s := d.stages[len(d.stages)-1]
	switch i.Name {
	case "ARG":
		return d.arg(i, s.args, s.variables())
	case "RUN":
		return d.runStep(s, i)
	case "COPY", "ADD":
		return d.copyStep(s, i)
	case "MAINTAINER":
		return nil
	}
	return s.configure(i)
}

// variables returns what finds a variable of a stage, as long as none is set.
func (s *stage) variables() func(string) string {
	all := map[string]string{}
	maps.Copy(all, s.args)
	for _, e := range s.config.Env {
		name, value, _ := strings.Cut(e, "=")
		all[name] = value
	}
	return func(name string) string { return all[name] }
}

func (d *build) arg(i *dockerfile.Instruction, to map[string]string, get func(string) string) error {
	names, values, err := i.Pairs(get)
	if err != nil {
		return err
	}
	for _, n := range names {
		given, ok := d.given[n]
		switch {
		case ok:
			to[n] = given
		case values[n] != nil:
			to[n] = *values[n]
		case d.global[n] != "": // declared before the first FROM
			to[n] = d.global[n]
		}
	}
	if len(to) > maxArgs {
		return refuse(RuleLimit, "", "more than %d build arguments", maxArgs)
	}
	return checkArgs(slices.Concat(slices.Collect(maps.Keys(to)), slices.Collect(maps.Values(to))))
}

// from begins a stage, on an image that is present or an earlier stage.
func (d *build) from(i *dockerfile.Instruction) error {
	words, err := i.Words(func(name string) string { return d.global[name] })
	if err != nil {
		return err
	}
	s := &stage{args: map[string]string{}}
	switch {
	case len(words) == 3 && strings.EqualFold(words[1], "as"):
		s.name = words[2]
	case len(words) != 1:
		return &dockerfile.Error{Line: i.Line, Why: "want FROM IMAGE, or FROM IMAGE AS NAME"}
	}
	if len(d.stages) > 0 {
		if _, err := d.finish(d.stages[len(d.stages)-1]); err != nil {
			return err
		}
	}
	if before := d.stage(words[0]); before != nil {
		s.image, s.base, s.config = before.image, before.base, before.config.clone()
	} else if err := d.base(s, words[0]); err != nil {
		return err
	}
	d.stages = append(d.stages, s)
	return nil
}

// stage is an earlier stage of that name or number.
func (d *build) stage(name string) *stage {
	for n, s := range slices.Backward(d.stages) {
		if s.name != "" && strings.EqualFold(s.name, name) || strconv.Itoa(n) == name {
			return s
		}
	}
	return nil
}

// base has a stage begin with an image.
func (d *build) base(s *stage, name string) error {
	facts, err := d.image(d.ctx, name)
	if err != nil {
		return err
	}
	var full struct{ Config imageConfig }
	if err := d.engine.do(d.ctx, message{method: http.MethodGet, path: "/images/" + escaped(facts.ID) + "/json"}, &full); err != nil {
		return err
	}
	if len(full.Config.OnBuild) > 0 {
		return refuse(RuleImage, "use another image", "the image %.200q has ONBUILD instructions, which are not run here", name)
	}
	s.image, s.base, s.config = facts.ID, d.toldOf(name), full.Config
	s.config.Image, s.config.Labels = "", guestLabels(s.config.Labels)
	return nil
}

func (c imageConfig) clone() imageConfig {
	c.Env, c.Labels, c.ExposedPorts, c.Volumes = slices.Clone(c.Env), maps.Clone(c.Labels), maps.Clone(c.ExposedPorts), maps.Clone(c.Volumes)
	return c
}

// shell is how commands are run that are no list of words.
func (c *imageConfig) shell() []string {
	if len(c.Shell) > 0 {
		return c.Shell
	}
	return []string{"/bin/sh", "-c"}
}

// command is what RUN, CMD and ENTRYPOINT say.
func (c *imageConfig) command(i *dockerfile.Instruction) words {
	if list, ok := i.Exec(); ok {
		return list
	}
	return append(slices.Clone(c.shell()), i.Rest)
}

// noEntrypoint takes that of the image away: engines read it so.
var noEntrypoint = words{""}

// runStep runs a command in a container of the image as built so far.
func (d *build) runStep(s *stage, i *dockerfile.Instruction) error {
	argv := s.config.command(i)
	if len(argv) == 0 {
		return &dockerfile.Error{Line: i.Line, Why: "RUN needs a command"}
	}
	run := slices.Clone(argv)
	if _, exec := i.Exec(); !exec {
		run[len(run)-1] = s.exports() + run[len(run)-1]
	}
	config := common{
		Image: s.image, Entrypoint: noEntrypoint, Cmd: run, Env: s.config.Env, User: s.config.User, WorkingDir: s.config.WorkingDir,
		Healthcheck: &healthcheck{Test: []string{"NONE"}},
	}
	c, err := d.container(s, config, argv)
	if err != nil {
		return err
	}
	defer d.removeChild(c)
	if err := d.check(d.ctx, toolKind, toolCall, "docker:start", s.base, c.wanted.name); err != nil {
		return err
	}
	number, err := d.start(d.ctx, c)
	if err != nil {
		return err
	}
	d.watch(c, number)
	code, err := d.output(c)
	if err != nil {
		return err
	}
	if code != 0 {
		return &stepError{fmt.Sprintf("The command %q returned a non-zero code: %d", strings.Join(argv, " "), code)}
	}
	repo, tag := d.newTag()
	_, err = d.commit(c, repo, tag, nil)
	s.image = repo + ":" + tag
	return err
}

// exports gives a command the build arguments, which are no variables of the image's
// containers. Programs that are no shell don't get them. They are not put to the guard,
// as variables never are: their values may be secret.
func (s *stage) exports() string {
	if !oneOf(path.Base(s.config.shell()[0]), "sh", "bash", "dash", "ash") {
		return ""
	}
	text, get := "", s.variables()
	for _, name := range slices.Sorted(maps.Keys(s.args)) {
		if get(name) == s.args[name] && variableForm().MatchString(name) {
			text += "export " + name + "='" + strings.ReplaceAll(s.args[name], "'", `'\''`) + "'; "
		}
	}
	return text
}

// argv are the words of a container's process.
func (c *common) argv() []string {
	return slices.Concat(c.Entrypoint, c.Cmd)
}

// container makes a container of a stage, with what was copied since the last. The
// guard is asked about argv.
func (d *build) container(s *stage, config common, argv []string) (*child, error) {
	r := createRequest{common: config}
	if d.isolated {
		r.HostConfig.NetworkMode = "none"
	}
	w, err := judge("", &r)
	if err != nil {
		return nil, err
	}
	w.step = true
	facts, err := d.facts(d.ctx, s.image)
	if err != nil {
		return nil, err
	}
	w.body.Image = facts.ID
	if err := w.addImage(facts); err != nil {
		return nil, err
	}
	if err := d.check(d.ctx, toolKind, toolCall, "docker:create", slices.Concat([]string{s.base}, argv, w.health())...); err != nil {
		return nil, err
	}
	c, _, err := d.create(d.ctx, w)
	if err != nil {
		return nil, err
	}
	for n := range s.copies {
		if err := d.put(c, &s.copies[n]); err != nil {
			d.removeChild(c)
			return nil, err
		}
	}
	s.copies = nil
	return c, nil
}

// put brings files into a container that never ran.
func (d *build) put(c *child, files *fileCopy) error {
	st, err := d.engine.stat(d.ctx, c.id, files.to)
	if err != nil {
		return err
	}
	one := *files
	if one.unlessThere && st.there {
		return nil
	}
	one.into = one.into || st.there && st.mode.IsDir()
	r, w := io.Pipe()
	go func() {
		out := tar.NewWriter(w)
		err := one.write(out)
		if err == nil {
			err = out.Close()
		}
		w.CloseWithError(err)
	}()
	defer r.Close()
	m := message{method: http.MethodPut, path: "/containers/" + c.id + "/archive", query: url.Values{"path": {"/"}}, raw: r, kind: "application/x-tar", limit: 10 * time.Minute}
	return d.engine.do(d.ctx, m, nil)
}

// output says what a container writes until it ends, and returns how.
func (d *build) output(c *child) (code int, err error) {
	query := url.Values{"follow": {"1"}, "stdout": {"1"}, "stderr": {"1"}}
	resp, err := d.engine.stream(d.ctx, message{method: http.MethodGet, path: "/containers/" + c.id + "/logs", query: query})
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	if err := eachFrame(resp.Body, func(text []byte) error { return d.print("%s", text) }); err != nil {
		return 0, err
	}
	if err := d.wait(d.ctx, c, "not-running"); err != nil {
		return 0, err
	}
	var full struct{ State struct{ ExitCode int } }
	err = d.engine.do(d.ctx, message{method: http.MethodGet, path: "/containers/" + c.id + "/json"}, &full)
	return full.State.ExitCode, err
}

// eachFrame takes a stream without a terminal apart: a byte for which stream,
// three of nothing, four for the length.
func eachFrame(from io.Reader, say func([]byte) error) error {
	var head [8]byte
	for {
		if _, err := io.ReadFull(from, head[:]); err != nil {
			return nil //nolint:nilerr // how the container ended is asked next
		}
		left := int64(head[4])<<24 | int64(head[5])<<16 | int64(head[6])<<8 | int64(head[7])
		for left > 0 {
			text := make([]byte, min(left, 16<<10))
			if _, err := io.ReadFull(from, text); err != nil {
				return err
			}
			left -= int64(len(text))
			if err := say(text); err != nil {
				return err
			}
		}
	}
}

// finish makes a stage an image, with what it says of its containers.
func (d *build) finish(s *stage) (id string, err error) {
	config := s.config
	config.Image, config.OnBuild = s.image, nil
	if len(config.Cmd)+len(config.Entrypoint) == 0 {
		config.Cmd = words{"/bin/sh"} // engines make no container without a command
	}
	// The commands of its containers, on their own as well, are judged here: a
	// request for one of them need not repeat them.
	step := config.common
	step.Labels, step.Volumes = nil, nil
	if len(step.Entrypoint) == 0 {
		step.Entrypoint = noEntrypoint
	}
	c, err := d.container(s, step, config.argv())
	if err != nil {
		return "", err
	}
	defer d.removeChild(c)
	repo, tag := d.newTag()
	config.Labels = d.labels(config.Labels, RoleChild)
	if id, err = d.commit(c, repo, tag, &config); err != nil {
		return "", err
	}
	s.image = repo + ":" + tag
	return id, nil
}

// commit makes an image of a container that has ended or never ran.
func (d *build) commit(c *child, repo, tag string, config *imageConfig) (id string, err error) {
	var made struct {
		ID string `json:"Id"`
	}
	m := message{method: http.MethodPost, path: "/commit", query: url.Values{"container": {c.id}, "repo": {repo}, "tag": {tag}, "pause": {"0"}}, limit: 10 * time.Minute, body: struct{}{}}
	if config != nil {
		m.body = config
	}
	// This request outlives the guest's connection: the broker must learn what the engine
	// made.
	ctx, done := outliving(d.ctx, createTime)
	defer done()
	err = d.engine.do(ctx, m, &made)
	return made.ID, err
}

// removeChild removes a container of a step. One that can't be removed is left to the
// guest.
func (b *Broker) removeChild(c *child) {
	if err := destroy(b.engine, c.id); err != nil {
		b.log("remove the container of a step: %v", err)
		b.mu.Lock()
		defer b.mu.Unlock()
		c.wanted.step = false
		return
	}
	b.forget(c)
}
