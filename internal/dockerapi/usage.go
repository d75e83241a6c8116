package dockerapi

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
)

// stats hands on what a container uses, as it comes. Names of the engine's, and
// its storage, are left out.
func (b *Broker) stats(w http.ResponseWriter, r *http.Request, c *call) error {
	child, err := b.find(c.names[0])
	if err != nil {
		return err
	}
	query, err := c.pass(wordForm(), "stream", "one-shot")
	if err != nil {
		return err
	}
	resp, err := b.engine.stream(r.Context(), message{method: http.MethodGet, path: "/containers/" + child.id + "/stats", query: query})
	if err != nil {
		return b.forgetIfGone(child, err)
	}
	defer resp.Body.Close()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	w.(http.Flusher).Flush()
	dec, enc := json.NewDecoder(resp.Body), json.NewEncoder(w)
	dec.UseNumber()
	for {
		var full map[string]any
		if dec.Decode(&full) != nil {
			return nil
		}
		out := only(full, "read", "preread", "pids_stats", "blkio_stats", "num_procs", "cpu_stats", "precpu_stats", "memory_stats", "networks")
		out["id"], out["name"] = child.id, "/"+b.nameOf(child)
		if enc.Encode(out) != nil {
			return nil
		}
		w.(http.Flusher).Flush()
	}
}

// top lists the processes of a container. Their numbers are counted anew: the
// engine's are the host's.
func (b *Broker) top(w http.ResponseWriter, r *http.Request, c *call) error {
	child, err := b.find(c.names[0])
	if err != nil {
		return err
	}
	var list struct {
		Titles    []string
		Processes [][]string
	}
	if err := b.engine.do(r.Context(), message{method: http.MethodGet, path: "/containers/" + child.id + "/top"}, &list); err != nil {
		return b.forgetIfGone(child, err)
	}
	pid, parent := slices.Index(list.Titles, "PID"), slices.Index(list.Titles, "PPID")
	known := map[string]string{}
	for i, p := range list.Processes {
		if pid >= 0 && pid < len(p) {
			known[p[pid]] = strconv.Itoa(i + 1)
			p[pid] = known[p[pid]]
		}
	}
	for _, p := range list.Processes {
		if parent >= 0 && parent < len(p) {
			if p[parent] = known[p[parent]]; p[parent] == "" {
				p[parent] = "0"
			}
		}
	}
	writeJSON(w, http.StatusOK, list)
	return nil
}
