package dockerapi

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"sync"
)

type execRequest struct {
	AttachStdin  bool     `json:",omitempty"`
	AttachStdout bool     `json:",omitempty"`
	AttachStderr bool     `json:",omitempty"`
	DetachKeys   string   `json:",omitempty"`
	Detach       bool     `json:"-"`
	Tty          bool     `json:",omitempty"`
	Env          []string `json:",omitempty"`
	Cmd          words    `json:",omitempty"`
	User         string   `json:",omitempty"`
	WorkingDir   string   `json:",omitempty"`
	ConsoleSize  *[2]uint `json:",omitempty"`
}

func (b *Broker) createExec(w http.ResponseWriter, r *http.Request, c *call) error {
	child, err := b.find(c.names[0])
	if err != nil {
		return err
	}
	var req execRequest
	if err := readBody(r, &req); err != nil {
		return err
	}
	if err := req.check(); err != nil {
		return err
	}
	if err := b.check(r.Context(), toolKind, toolCall, "docker:exec", append([]string{child.wanted.name}, req.Cmd...)...); err != nil {
		return err
	}
	leave, err := b.gates.share(r.Context(), child.key()) // engines refuse it in a container that is paused
	if err != nil {
		return err
	}
	defer leave()
	slot, err := b.reserveExec(r.Context(), child)
	if err != nil {
		return err
	}
	var made struct {
		ID string `json:"Id"`
	}
	m := message{method: http.MethodPost, path: "/containers/" + child.id + "/exec", body: req}
	// This request outlives the guest's connection: the broker must learn what the engine
	// made.
	if err := b.engine.do(context.WithoutCancel(r.Context()), m, &made); err != nil {
		if notMade(err) {
			b.releaseExec(slot)
		} else {
			b.markUncertain(slot)
		}
		return b.forgetIfGone(child, err)
	}
	if !hexForm().MatchString(made.ID) {
		b.markUncertain(slot)
		return missing("container", child.wanted.name)
	}
	if !b.keepExec(slot, made.ID) {
		return missing("container", child.wanted.name)
	}
	writeJSON(w, http.StatusCreated, made)
	return nil
}

// check bounds the parts that the engine will keep.
func (r *execRequest) check() error {
	switch {
	case r.User != "" && !userForm().MatchString(r.User):
		return bad("%.50q is no user; write NAME, or UID:GID", r.User)
	case len(r.DetachKeys) > 64:
		return bad("DetachKeys is too long")
	}
	if err := checkDir(r.WorkingDir); err != nil {
		return err
	}
	return checkArgs(append(append([]string{}, r.Env...), r.Cmd...))
}

type execStart struct {
	Detach      bool     `json:",omitempty"`
	Tty         bool     `json:",omitempty"`
	ConsoleSize *[2]uint `json:",omitempty"`
}

func (b *Broker) startExec(w http.ResponseWriter, r *http.Request, c *call) error {
	id, err := b.exec(c.names[0])
	if err != nil {
		return err
	}
	var req execStart
	if err := readBody(r, &req); err != nil {
		return err
	}
	in, key := b.containerOf(id)
	if in != nil && in.mirrored() {
		if _, err := b.together(r.Context(), in); err != nil {
			return err
		}
		in.used.Store(true)
	}
	leave, err := b.gates.share(r.Context(), key)
	if err != nil {
		return err
	}
	leave = sync.OnceFunc(leave)
	defer leave()
	m := message{method: http.MethodPost, path: "/exec/" + id + "/start", body: req}
	if !req.Detach {
		return b.hijack(w, r, m, func(err error) {
			leave()
			b.startAnswered(id, err)
		})
	}
	// This request outlives the guest's connection: the broker must learn whether it
	// started.
	err = b.engine.do(context.WithoutCancel(r.Context()), m, nil)
	b.startAnswered(id, err)
	if err != nil {
		return err
	}
	w.WriteHeader(http.StatusOK)
	return nil
}

// containerOf is the container in which a command is, and its gate.
func (b *Broker) containerOf(id string) (in *child, gate string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e := b.execs[id]; e != nil {
		return b.children[e.container], "container " + e.container
	}
	return nil, "exec " + id // it has ended with its container
}

func (b *Broker) inspectExec(w http.ResponseWriter, r *http.Request, c *call) error {
	id, err := b.exec(c.names[0])
	if err != nil {
		return err
	}
	var out struct {
		ID            string
		Running       bool
		ExitCode      *int
		ProcessConfig map[string]any
		OpenStdin     bool
		OpenStderr    bool
		OpenStdout    bool
		CanRemove     bool
		ContainerID   string
		DetachKeys    string
		Pid           int `json:"-"`
	}
	if err := b.engine.do(r.Context(), message{method: http.MethodGet, path: "/exec/" + id + "/json"}, &out); err != nil {
		return err
	}
	if in, _ := b.containerOf(id); in != nil && !out.Running && in.used.Swap(false) { // clients ask when it has ended
		_, err := b.together(r.Context(), in)
		b.complain(in, err)
	}
	writeJSON(w, http.StatusOK, out)
	return nil
}

func (b *Broker) resizeExec(w http.ResponseWriter, r *http.Request, c *call) error {
	id, err := b.exec(c.names[0])
	if err != nil {
		return err
	}
	query, err := c.pass(wordForm(), "h", "w")
	if err != nil {
		return err
	}
	if err := b.engine.do(r.Context(), message{method: http.MethodPost, path: "/exec/" + id + "/resize", query: query}, nil); err != nil {
		return err
	}
	w.WriteHeader(http.StatusOK)
	return nil
}

func (b *Broker) attach(w http.ResponseWriter, r *http.Request, c *call) error {
	child, err := b.find(c.names[0])
	if err != nil {
		return err
	}
	query := url.Values{}
	for _, name := range strings.Fields("logs stream stdin stdout stderr") {
		if c.flag(name) {
			query.Set(name, "1")
		}
	}
	return b.hijack(w, r, message{method: http.MethodPost, path: "/containers/" + child.id + "/attach", query: query}, nil)
}
