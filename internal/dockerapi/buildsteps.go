package dockerapi

import (
	"archive/tar"
	"context"
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
		return d.arg(i, s.args, s.get)
	case "RUN":
		return d.runStep(s, i)
	case "COPY", "ADD":
		return d.copyStep(s, i)
	case "MAINTAINER":
		return nil
	}
	return s.configure(i)
}

// get is a variable of a stage.
func (s *stage) get(name string) string {
	for _, e := range slices.Backward(s.config.Env) {
		if v, ok := strings.CutPrefix(e, name+"="); ok {
			return v
		}
	}
	return s.args[name]
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
	return nil
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
		s.image, s.config = before.image, before.config.clone()
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
	s.image, s.config = facts.ID, full.Config
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

// runStep runs a command in a container of what there is so far.
func (d *build) runStep(s *stage, i *dockerfile.Instruction) error {
	argv := s.config.command(i)
	if len(argv) == 0 {
		return &dockerfile.Error{Line: i.Line, Why: "RUN needs a command"}
	}
	if _, exec := i.Exec(); !exec {
		argv[len(argv)-1] = s.exports() + argv[len(argv)-1]
	}
	config := common{
		Image: s.image, Entrypoint: noEntrypoint, Cmd: argv, Env: s.config.Env, User: s.config.User, WorkingDir: s.config.WorkingDir,
		Healthcheck: &healthcheck{Test: []string{"NONE"}},
	}
	c, err := d.container(s, config)
	if err != nil {
		return err
	}
	defer d.removeChild(c)
	if err := d.check(d.ctx, toolKind, toolCall, "docker:start", s.image, c.wanted.name); err != nil {
		return err
	}
	run, err := d.start(d.ctx, c)
	if err != nil {
		return err
	}
	d.watch(c, run)
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

// exports gives a command the build arguments, which don't stay in the image.
// Programs that are no shell don't get them.
func (s *stage) exports() string {
	if !oneOf(path.Base(s.config.shell()[0]), "sh", "bash", "dash", "ash") {
		return ""
	}
	text := ""
	for _, name := range slices.Sorted(maps.Keys(s.args)) {
		if s.get(name) == s.args[name] {
			text += "export " + name + "='" + strings.ReplaceAll(s.args[name], "'", `'\''`) + "'; "
		}
	}
	return text
}

// container makes a container of a stage, with what was copied since the last.
func (d *build) container(s *stage, config common) (*child, error) {
	r := createRequest{common: config}
	if d.isolated {
		r.HostConfig.NetworkMode = "none"
	}
	w, err := judge("", &r)
	if err != nil {
		return nil, err
	}
	facts, err := d.image(d.ctx, strings.TrimPrefix(s.image, "sha256:"))
	if err != nil {
		return nil, err
	}
	w.body.Image = facts.ID
	if err := w.addImage(facts); err != nil {
		return nil, err
	}
	argv := slices.Concat([]string{s.image}, config.Entrypoint, config.Cmd)
	argv = slices.DeleteFunc(argv, func(word string) bool { return word == "" })
	if err := d.check(d.ctx, toolKind, toolCall, "docker:create", argv...); err != nil {
		return nil, err
	}
	id, _, err := d.create(d.ctx, w)
	if err != nil {
		return nil, err
	}
	c, err := d.find(id)
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
	if err := eachFrame(resp.Body, func(text []byte) error { return d.say(buildLine{Stream: string(text)}) }); err != nil {
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
	step := common{Image: s.image, Cmd: config.Cmd, Entrypoint: config.Entrypoint, Env: config.Env, User: config.User, WorkingDir: config.WorkingDir}
	if len(step.Entrypoint) == 0 {
		step.Entrypoint = noEntrypoint
	}
	c, err := d.container(s, step)
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
	// Not given up with the guest's connection: what is made has to be known.
	err = d.engine.do(context.WithoutCancel(d.ctx), m, &made)
	return made.ID, err
}

// removeChild removes a container of a step.
func (b *Broker) removeChild(c *child) {
	if err := destroy(b.engine, c.id); err != nil {
		b.log("remove the container of a step: %v", err)
		return
	}
	b.forget(c)
}
