package broker

import (
	"net/http"
	"net/url"
	"strings"
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
	switch {
	case req.User != "" && !userForm().MatchString(req.User):
		return bad("%.50q is no user; write NAME, or UID:GID", req.User)
	case len(req.DetachKeys) > 64:
		return bad("DetachKeys is too long")
	}
	if err := checkArgs(append(append([]string{}, req.Env...), req.Cmd...)); err != nil {
		return err
	}
	if err := b.check(r.Context(), toolKind, toolCall, "docker:exec", append([]string{child.wanted.name}, req.Cmd...)...); err != nil {
		return err
	}
	var made struct {
		ID string `json:"Id"`
	}
	m := message{method: http.MethodPost, path: "/containers/" + child.id + "/exec", body: req}
	if err := b.engine.do(r.Context(), m, &made); err != nil {
		return b.forgetIfGone(child, err)
	}
	if !hexForm().MatchString(made.ID) {
		return missing("container", child.wanted.name)
	}
	if !b.keepExec(made.ID, child.id) {
		return refuse(RuleLimit, "remove the container", "more than %d commands were started in the session's containers", maxExecs)
	}
	writeJSON(w, http.StatusCreated, made)
	return nil
}

// maxExecs bounds what is remembered of commands that were made.
const maxExecs = 100_000

func (b *Broker) keepExec(id, container string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.execs) >= maxExecs {
		return false
	}
	b.execs[id] = container
	return true
}

// exec returns the ID of a command of one of the session's containers.
func (b *Broker) exec(ref string) (string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.execs[ref] == "" || b.children[b.execs[ref]] == nil {
		return "", missing("exec instance", ref)
	}
	return ref, nil
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
	m := message{method: http.MethodPost, path: "/exec/" + id + "/start", body: req}
	if !req.Detach {
		return b.hijack(w, r, m)
	}
	if err := b.engine.do(r.Context(), m, nil); err != nil {
		return err
	}
	w.WriteHeader(http.StatusOK)
	return nil
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
	if err := noBody(r); err != nil {
		return err
	}
	query := url.Values{}
	for _, name := range strings.Fields("logs stream stdin stdout stderr") {
		if c.flag(name) {
			query.Set(name, "1")
		}
	}
	return b.hijack(w, r, message{method: http.MethodPost, path: "/containers/" + child.id + "/attach", query: query})
}
