package web_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/bawn-dev/bawn/internal/testenv"
	v1 "github.com/bawn-dev/bawn/proto/bawn/v1"
)

// onlyVariable names the scenarios to run, where not all are wanted. The
// scenarios themselves look at BAWN_TEST_SHOTS: a directory for screenshots.
const onlyVariable = "BAWN_TEST_SCENES"

// attacks are the scenarios in which the page withstands somebody, and one of each
// kind that is left. They run where testenv.Short says so.
var attacks = []string{"phoneAnswers", "alwaysConfirms", "hostileText", "movedButton", "readOnly", "loginEnds", "wrongCode", "policyHolds", "answeredElsewhere", "realAnswers", "realUndo", "copyUntouched", "realCopy"}

// TestPage runs every scenario of page/ in one browser.
func TestPage(t *testing.T) {
	testenv.Need(t, "node", "chromium", "go", "userns", "landlock", "seccomp", "notify")
	bin := programs(t)
	ca, key := authority(t, t.TempDir())
	c := &control{worlds: map[string]world{}, kinds: map[string]func() world{
		"fixture": func() world { return newFixture(t) },
		"backend": func() world { return openBackend(t, ca) },
		"machine": func() world { return openMachine(t, bin, ca) },
	}}
	server := httptest.NewServer(c)
	defer server.Close()
	only := strings.Fields(os.Getenv(onlyVariable))
	if len(only) == 0 && testenv.Short() {
		only = attacks
	}
	cmd := exec.Command("node", append([]string{"page/run.mjs", server.URL, key}, only...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stop := time.AfterFunc(10*time.Minute, func() { cmd.Process.Kill() })
	defer stop.Stop()
	n := 0
	for lines := bufio.NewScanner(out); lines.Scan(); n++ {
		report(t, lines.Bytes())
	}
	if err := cmd.Wait(); err != nil || n < max(5, len(only)) && os.Getenv(onlyVariable) == "" {
		t.Errorf("%d scenarios, %v; want all of page/run.mjs, or %q, and no error", n, err, only)
	}
}

// report makes a subtest of a line that page/run.mjs writes.
func report(t *testing.T, line []byte) {
	var r struct {
		Name, Error string
		MS          int
	}
	if err := json.Unmarshal(line, &r); err != nil {
		t.Errorf("%q: %v", line, err)
		return
	}
	t.Run(r.Name, func(t *testing.T) {
		t.Logf("%d ms in the browser", r.MS)
		if r.Error != "" {
			t.Error(r.Error)
		}
	})
}

// A world is what a scenario meets behind the page.
type world interface {
	origin() string
	// tell changes it, or answers a question about it; false is an unknown verb.
	tell(verb string, w http.ResponseWriter, r *http.Request) bool
}

// control lets the scenarios make worlds and change them: POST /new/KIND answers
// an origin, POST /VERB?world=ORIGIN&… is told to that world.
type control struct {
	kinds  map[string]func() world
	mu     sync.Mutex
	worlds map[string]world
}

func (c *control) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	verb := strings.TrimPrefix(r.URL.Path, "/")
	if kind, is := strings.CutPrefix(verb, "new/"); is {
		made := c.kinds[kind]()
		c.mu.Lock()
		c.worlds[made.origin()] = made
		c.mu.Unlock()
		fmt.Fprint(w, made.origin())
		return
	}
	c.mu.Lock()
	to := c.worlds[r.FormValue("world")] // which parses the form
	c.mu.Unlock()
	if to == nil || !to.tell(verb, w, r) {
		http.Error(w, "no such world or verb: "+r.URL.String(), http.StatusNotFound)
	}
}

func (f *fixture) tell(verb string, w http.ResponseWriter, r *http.Request) bool {
	do := verbs[verb]
	if do != nil {
		do(f, w, r)
	}
	return do != nil
}

var verbs = map[string]func(*fixture, http.ResponseWriter, *http.Request){
	"ask": func(f *fixture, _ http.ResponseWriter, r *http.Request) {
		f.do(func() {
			for _, name := range r.Form["name"] {
				f.asked = append(f.asked, question(name))
			}
		})
	},
	"crowd": func(f *fixture, _ http.ResponseWriter, _ *http.Request) {
		f.do(func() {
			for i := range 1000 {
				q := question("push")
				q.Id = fmt.Sprintf("crowd%04d", i)
				f.asked = append(f.asked, q)
			}
		})
	},
	"elsewhere": func(f *fixture, _ http.ResponseWriter, r *http.Request) {
		f.answer(&v1.ApprovalServiceAnswerRequest{Id: r.FormValue("id"), Verdict: v1.Verdict_VERDICT_ALLOW, Scope: v1.Scope_SCOPE_SESSION}, "anna at the terminal")
	},
	"reset":    func(f *fixture, _ http.ResponseWriter, _ *http.Request) { f.do(func() { f.asked = nil }) },
	"down":     func(f *fixture, _ http.ResponseWriter, _ *http.Request) { f.do(f.goDown) },
	"up":       func(f *fixture, _ http.ResponseWriter, _ *http.Request) { f.do(func() { f.down = false }) },
	"readonly": func(f *fixture, _ http.ResponseWriter, _ *http.Request) { f.do(func() { f.readOnly = true }) },
	"logout": func(f *fixture, _ http.ResponseWriter, _ *http.Request) {
		f.do(func() { clear(f.logins); f.goDown(); f.down = false })
	},
	"state": state,
}

// state says what the page has done.
func state(f *fixture, w http.ResponseWriter, _ *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	raw := func(m proto.Message) json.RawMessage {
		text, _ := protojson.Marshal(m)
		return text
	}
	var answers, queries []json.RawMessage
	for _, a := range f.answers {
		answers = append(answers, raw(a))
	}
	for _, q := range f.queries {
		queries = append(queries, raw(q))
	}
	json.NewEncoder(w).Encode(map[string]any{"answers": answers, "queries": queries, "killed": slices.Clone(f.killed), "undone": len(f.undone), "applied": slices.Clone(f.applied), "discarded": f.discarded, "typed": string(f.typed), "devices": len(f.devices)})
}
