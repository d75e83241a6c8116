package dockerapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/testenv"
)

// engineLimits is what the engine itself lets a container use.
func (r *rig) engineLimits(id string) (s share) {
	r.t.Helper()
	var full struct {
		HostConfig struct{ Memory, MemorySwap, NanoCpus, PidsLimit int64 }
	}
	if _, data := r.direct("GET", "/containers/"+id+"/json", nil); json.Unmarshal(data, &full) != nil {
		r.t.Fatalf("%s", data)
	}
	h := full.HostConfig
	if h.MemorySwap != h.Memory {
		r.t.Errorf("swap beyond the memory's limit: %+v", h)
	}
	return share{memory: h.Memory, nano: h.NanoCpus, pids: h.PidsLimit}
}

func sleeper(more dict) dict {
	return dict{"Image": busybox, "Cmd": []string{"sleep", "1000"}, "HostConfig": more}
}

// A container that can't be started holds nothing of the session's limits, kept or
// removed by the engine.
func TestFailedStartsGiveBack(t *testing.T) {
	r := newRig(t, nil)
	for i := range 6 {
		var made struct {
			ID string `json:"Id"`
		}
		r.must("POST", "/containers/create", dict{
			"Image": busybox, "Cmd": []string{"/nonexistent"},
			"HostConfig": dict{"AutoRemove": i%2 == 0, "Memory": 512 << 20, "PidsLimit": 200},
		}, &made)
		if status, text := r.call("POST", "/containers/"+made.ID+"/start", nil); status != http.StatusBadRequest || !strings.Contains(string(text), "/nonexistent") {
			t.Fatalf("start: %d %s", status, text)
		}
		status, _ := r.call("GET", "/containers/"+made.ID+"/json", nil)
		if want := map[bool]int{true: http.StatusNotFound, false: http.StatusOK}[i%2 == 0]; status != want {
			t.Errorf("number %d: %d; want %d", i, status, want)
		}
	}
	r.run("whole", sleeper(dict{"Memory": 1024 << 20, "PidsLimit": 400}))
	if n := len(r.broker.all()); n != 4 {
		t.Errorf("%d containers are kept; want three that did not start, and one that did", n)
	}
	// The control: what runs holds what it has.
	var made struct {
		ID string `json:"Id"`
	}
	r.must("POST", "/containers/create", sleeper(dict{"Memory": 8 << 20}), &made)
	if status, text := r.call("POST", "/containers/"+made.ID+"/start", nil); status != http.StatusForbidden || !strings.Contains(string(text), RuleLimit) {
		t.Errorf("beside one that has everything: %d %s", status, text)
	}
	r.must("POST", "/containers/whole/kill", nil, nil)
	testenv.Until(t, "what the killed one had", func() bool {
		status, _ := r.call("POST", "/containers/"+made.ID+"/start", nil)
		return status == http.StatusNoContent
	})
}

// Containers without limits of their own share what is there equally, however
// many there are; the engine never lets all of them use more than the session
// may.
func TestManyContainersShareTheLimits(t *testing.T) {
	r := newRig(t, func(_ *rig, o *Options) {
		o.Session.Isolation.Resources = bawn.Resources{MemoryMB: 1024, PIDs: 400, CPUs: 1}
	})
	total := share{memory: 1024 << 20, pids: 400, nano: billion}
	ids := []string{r.run("stated", sleeper(dict{"Memory": 128 << 20}))}
	for i := range 5 {
		ids = append(ids, r.run(fmt.Sprint("c", i), sleeper(nil)))
		var sum share
		for _, id := range ids {
			s := r.engineLimits(id)
			sum = share{sum.memory + s.memory, sum.nano + s.nano, sum.pids + s.pids}
		}
		if sum.memory > total.memory || sum.pids > total.pids || sum.nano > total.nano {
			t.Fatalf("%d containers may use %+v; the session %+v", len(ids), sum, total)
		}
	}
	if s := r.engineLimits(ids[0]); s.memory != 128<<20 {
		t.Errorf("the one that asked for 128 MiB has %d", s.memory>>20)
	}
	if s := r.engineLimits(ids[1]); s.memory != (1024-128)<<20/8 || s.pids != 400/8 {
		t.Errorf("the first of five without limits has %+v", s)
	}
	var shown struct{ HostConfig struct{ Memory int64 } }
	r.must("GET", "/containers/c0/json", nil, &shown)
	if shown.HostConfig.Memory != r.engineLimits(ids[1]).memory {
		t.Errorf("the guest is shown %d", shown.HostConfig.Memory)
	}
	// Containers that have ended leave what they had to those that start.
	for _, id := range ids[2:] {
		r.must("DELETE", "/containers/"+id+"?force=1", nil, nil)
	}
	if s := r.engineLimits(r.run("later", sleeper(nil))); s.memory != (1024-128)<<20/4 {
		t.Errorf("with two without limits one has %d MiB", s.memory>>20)
	}
}

// What a container uses is not taken from it.
func TestUsedMemoryStays(t *testing.T) {
	r := newRig(t, func(_ *rig, o *Options) { o.Session.Isolation.Resources = bawn.Resources{MemoryMB: 400, PIDs: 400} })
	full := r.run("full", dict{
		"Cmd":        []string{"sh", "-c", "dd if=/dev/zero of=/dev/shm/x bs=1M count=70 && echo full; sleep 1000"},
		"HostConfig": dict{"ShmSize": 80 << 20},
	})
	r.logs(full, "full")
	for i := range 3 {
		r.run(fmt.Sprint("c", i), sleeper(nil))
	}
	var made struct {
		ID string `json:"Id"`
	}
	r.must("POST", "/containers/create", sleeper(nil), &made)
	status, text := r.call("POST", "/containers/"+made.ID+"/start", nil)
	if status != http.StatusForbidden || !strings.Contains(string(text), `\"full\" uses more than the 50 MiB`) {
		t.Errorf("the fifth: %d %s", status, text)
	}
	if s := r.engineLimits(full); s.memory != 100<<20 {
		t.Errorf("the one that uses 70 MiB may use %d", s.memory>>20)
	}
	r.must("DELETE", "/containers/full?force=1", nil, nil)
	r.must("POST", "/containers/"+made.ID+"/start", nil, nil) // the control
}

// Containers that somebody removes without the broker no longer count.
func TestGoneContainersMakeRoom(t *testing.T) {
	testenv.Whole(t)
	r := newRig(t, nil)
	ids := make([]string, maxContainers)
	for i := range ids {
		var made struct {
			ID string `json:"Id"`
		}
		r.must("POST", "/containers/create", sleeper(nil), &made)
		ids[i] = made.ID
	}
	if status, text := r.call("POST", "/containers/create", sleeper(nil)); status != http.StatusForbidden || !strings.Contains(string(text), RuleLimit) {
		t.Errorf("one more than there may be: %d %s", status, text)
	}
	r.direct("DELETE", "/containers/"+ids[0], nil)
	r.must("POST", "/containers/create", sleeper(nil), nil)
}
