package dockerapi

import (
	"encoding/json"
	"net/http"

	"github.com/bawn-dev/bawn/internal/sandbox/maker"
)

// ping is answered by the broker itself.
func (b *Broker) ping(w http.ResponseWriter, r *http.Request, _ *call) error {
	version, err := b.engine.version(r.Context())
	if err != nil {
		return err
	}
	h := w.Header()
	h.Set("Api-Version", version)
	h.Set("Ostype", "linux")
	h.Set("Builder-Version", "1") // clients don't try BuildKit then
	h.Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodGet {
		_, _ = w.Write([]byte("OK")) // the guest may be gone
	}
	return nil
}

func (b *Broker) versionOf(w http.ResponseWriter, r *http.Request, _ *call) error {
	version, err := b.engine.version(r.Context())
	if err != nil {
		return err
	}
	var full map[string]any
	if err := b.engine.do(r.Context(), message{method: http.MethodGet, path: "/version"}, &full); err != nil {
		return err
	}
	out := only(full, "Version", "Os", "Arch")
	out["ApiVersion"], out["MinAPIVersion"] = version, "1.24"
	out["Platform"] = map[string]string{"Name": "Bawn's filter in front of an engine"}
	writeJSON(w, http.StatusOK, out)
	return nil
}

// info says what programs look for: how large the machine is, and whether it is
// one.
func (b *Broker) info(w http.ResponseWriter, r *http.Request, _ *call) error {
	var full map[string]any
	if err := b.engine.do(r.Context(), message{method: http.MethodGet, path: "/info"}, &full); err != nil {
		return err
	}
	out := only(full, "ServerVersion", "OperatingSystem", "OSType", "Architecture", "Driver", "CgroupDriver", "CgroupVersion", "KernelVersion",
		"MemoryLimit", "SwapLimit", "PidsLimit", "CpuCfsPeriod", "CpuCfsQuota", "CPUShares", "DefaultRuntime")
	t := b.budget.total
	out["MemTotal"], out["NCPU"], out["Name"], out["ID"] = t.memory, full["NCPU"], "bawn", b.o.Session.ID
	if t.nano > 0 {
		out["NCPU"] = max(t.nano/billion, 1)
	}
	out["Containers"], out["Labels"] = len(b.all()), []string{}
	out["Plugins"] = map[string]any{"Volume": []string{"local"}, "Network": []string{"bridge"}, "Log": []string{"json-file"}}
	writeJSON(w, http.StatusOK, out)
	return nil
}

// events hands on those of the session's own containers.
func (b *Broker) events(w http.ResponseWriter, r *http.Request, c *call) error {
	if err := c.knownFilters("container", "event", "type", "label"); err != nil {
		return err
	}
	query, err := c.pass(wordForm(), "since", "until")
	if err != nil {
		return err
	}
	filters := map[string][]string{"type": {"container"}, "label": append([]string{maker.LabelSession + "=" + b.o.Session.ID}, c.filters["label"]...)}
	if len(c.filters["event"]) > 0 {
		filters["event"] = c.filters["event"]
	}
	text, err := json.Marshal(filters)
	if err != nil {
		return err
	}
	query.Set("filters", string(text))
	resp, err := b.engine.stream(r.Context(), message{method: http.MethodGet, path: "/events", query: query})
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	w.(http.Flusher).Flush()
	b.tell(w, json.NewDecoder(resp.Body), c)
	return nil
}

// An event is one of Docker's, of a container.
type event struct {
	Status string `json:"status,omitempty"`
	ID     string `json:"id,omitempty"`
	From   string `json:"from,omitempty"`
	Type   string
	Action string
	Actor  struct {
		ID         string
		Attributes map[string]string
	}
	Scope    string `json:"scope,omitempty"`
	Time     int64  `json:"time,omitempty"`
	TimeNano int64  `json:"timeNano,omitempty"`
}

// tell writes the events of the session's containers, one by one, until the
// engine or the guest ends.
func (b *Broker) tell(w http.ResponseWriter, dec *json.Decoder, c *call) {
	wanted := func(e *event) bool {
		role := e.Actor.Attributes[maker.LabelRole]
		return e.Type == "container" && e.Actor.Attributes[maker.LabelSession] == b.o.Session.ID && role == RoleChild &&
			c.wants("type", func(f string) bool { return f == "container" }) &&
			c.wants("container", func(f string) bool { child, err := b.find(f); return err == nil && child.id == e.Actor.ID })
	}
	enc := json.NewEncoder(w)
	for {
		var e event
		if dec.Decode(&e) != nil {
			return
		}
		if !wanted(&e) {
			continue
		}
		e.Actor.Attributes = guestLabels(e.Actor.Attributes)
		e.Actor.Attributes["name"] = b.own(e.Actor.Attributes["name"])
		if enc.Encode(e) != nil {
			return
		}
		w.(http.Flusher).Flush()
	}
}

// refuseAlways explains why something is not served that people look for.
func refuseAlways(reason, remedy string) func(*Broker, http.ResponseWriter, *http.Request, *call) error {
	return func(*Broker, http.ResponseWriter, *http.Request, *call) error {
		return refuse(RuleEndpoint, remedy, "%s", reason)
	}
}

// never is for what no session has.
func never(kind string) func(*Broker, http.ResponseWriter, *http.Request, *call) error {
	return func(_ *Broker, _ http.ResponseWriter, _ *http.Request, c *call) error {
		return missing(kind, c.names[0])
	}
}
