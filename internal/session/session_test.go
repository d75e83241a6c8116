package session

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bawn-dev/bawn"
)

// parent is a session as people have them.
func parent() bawn.Session {
	return bawn.Session{
		ID: "p", Mode: bawn.ModeNormal, Autonomy: bawn.AutonomyModerate, Provider: "native",
		Isolation: bawn.Isolation{
			Workspace: "/w",
			Mounts:    []bawn.Mount{{Path: "/w", Access: bawn.ReadWrite, Why: "workspace"}, {Path: "/w/secret", Access: bawn.Hidden, Why: "--deny"}},
			Network:   bawn.NetworkAllowlist,
			Egress: bawn.Egress{
				Hosts: []string{"*.npmjs.org", "db.corp:5432"}, HTTP: []string{"api.example.org GET /v1/**"}, Git: []string{"git.example.org push team/* refs/heads/x/*"},
				HostPorts: []string{"5432"}, Ports: []string{"8080:3000"}, Secrets: []string{"npm"}, Ask: time.Minute, MaxConns: 8, MaxOutMB: 100, MaxUses: 50, MaxLentMB: 60,
			},
			Env: []string{"LANG", "LC_*"}, SetEnv: []string{"CI=1"}, Caches: bawn.CachePrivate, CacheDirs: []string{"/h/.cache"},
			Resources: bawn.Resources{CPUShares: 512, CPUs: 2, MemoryMB: 1024, TmpMB: 64, PIDs: 100, OpenFiles: 1000, FileSizeMB: 10, Timeout: time.Hour},
			Devices:   []string{"kvm"}, Protect: true,
		},
	}
}

// copyOf asks for all that the session has, in lists of its own.
func copyOf(s bawn.Session) bawn.Session {
	s.Parent, s.ID, s.Started = s.ID, "", time.Time{}
	iso := &s.Isolation
	iso.Mounts = slices.Clone(iso.Mounts)
	for _, list := range []*[]string{&iso.Env, &iso.SetEnv, &iso.CacheDirs, &iso.Devices, &iso.Egress.Hosts, &iso.Egress.HTTP, &iso.Egress.Git, &iso.Egress.HostPorts, &iso.Egress.Ports, &iso.Egress.Secrets} {
		*list = slices.Clone(*list)
	}
	return s
}

func child(t *testing.T, p bawn.Session, change func(*bawn.Session)) (bawn.Session, []Narrowed) {
	t.Helper()
	asked := copyOf(p)
	asked.ID = "c"
	change(&asked)
	got, narrowed, err := Meet(p, asked)
	if err != nil {
		t.Fatal(err)
	}
	for _, above := range []bawn.Session{p, asked} {
		if why, ok := meaningOf(got).noMore(meaningOf(above)); !ok {
			t.Errorf("the child is above its parent or what was asked: %s", why)
		}
	}
	return got, narrowed
}

// TestKodaReadHolesAreNotUnited: in Koda a hole that either side makes in a
// denied place stays open.
func TestKodaReadHolesAreNotUnited(t *testing.T) {
	got, narrowed := child(t, parent(), func(s *bawn.Session) {
		s.Isolation.Mounts = []bawn.Mount{{Path: "/w", Access: bawn.ReadWrite}, {Path: "/w/secret/keys", Access: bawn.ReadOnly}}
	})
	table := tableOf(got.Isolation)
	for p, want := range map[string]power{"/w": readWrite, "/w/secret": hidden, "/w/secret/keys": hidden} {
		if v, _ := table.at(p); v != want {
			t.Errorf("%s is %s, want %s", p, powerNames[v], powerNames[want])
		}
	}
	if !slices.ContainsFunc(narrowed, func(n Narrowed) bool { return n.Asked == "/w/secret/keys read-only" && n.Given == "hidden" }) {
		t.Errorf("the child isn't told: %+v", narrowed)
	}
}

// TestKodaEmptyListIsNotEverything empties each list on each side: in Koda no
// domains are all domains.
func TestKodaEmptyListIsNotEverything(t *testing.T) {
	lists := map[string]func(*bawn.Isolation) *[]string{
		"hosts":      func(i *bawn.Isolation) *[]string { return &i.Egress.Hosts },
		"http":       func(i *bawn.Isolation) *[]string { return &i.Egress.HTTP },
		"git":        func(i *bawn.Isolation) *[]string { return &i.Egress.Git },
		"host ports": func(i *bawn.Isolation) *[]string { return &i.Egress.HostPorts },
		"ports":      func(i *bawn.Isolation) *[]string { return &i.Egress.Ports },
		"secrets":    func(i *bawn.Isolation) *[]string { return &i.Egress.Secrets },
		"env":        func(i *bawn.Isolation) *[]string { return &i.Env },
		"set env":    func(i *bawn.Isolation) *[]string { return &i.SetEnv },
		"cache dirs": func(i *bawn.Isolation) *[]string { return &i.CacheDirs },
		"devices":    func(i *bawn.Isolation) *[]string { return &i.Devices },
	}
	for name, list := range lists {
		t.Run(name, func(t *testing.T) {
			full, empty := parent(), parent()
			full.ID, empty.ID = "full", "empty"
			*list(&empty.Isolation) = nil
			for _, pair := range [][2]bawn.Session{{full, empty}, {empty, full}} {
				got, narrowed, err := Meet(pair[0], pair[1])
				if err != nil || len(*list(&got.Isolation)) > 0 {
					t.Errorf("%s from %s has %q, %v; want none", pair[1].ID, pair[0].ID, *list(&got.Isolation), err)
				}
				if told := len(narrowed) > 0; pair[1].ID == "full" && !told {
					t.Error("the child isn't told")
				}
			}
			if got, _, err := Meet(full, func() bawn.Session { s := full; s.ID = "c"; return s }()); err != nil || len(*list(&got.Isolation)) == 0 {
				t.Errorf("control: what both list is not given: %v", err)
			}
		})
	}
	nothing := bawn.Session{ID: "c"}
	got, _, err := Meet(parent(), nothing)
	if err != nil || got.Isolation.Network != bawn.NetworkNone || got.Mode != bawn.ModePlan || !slices.Equal(got.Isolation.Env, nil) {
		t.Errorf("who asks for nothing gets %+v, %v", got, err)
	}
}

// TestKodaChildCanNarrow: in Koda a child that asks for less gets its parent's.
func TestKodaChildCanNarrow(t *testing.T) {
	got, narrowed := child(t, parent(), func(s *bawn.Session) {
		i := &s.Isolation
		i.Mounts = []bawn.Mount{{Path: "/w", Access: bawn.ReadOnly, Why: "definition"}, {Path: "/w/out", Access: bawn.ReadWrite, Why: "definition"}}
		i.Egress.Hosts, i.Egress.HTTP, i.Egress.Git = []string{"registry.npmjs.org:443"}, nil, nil
		i.Resources.MemoryMB = 256
	})
	want := []bawn.Mount{
		{Path: "/h/.cache", Access: bawn.Hidden}, {Path: "/w", Access: bawn.ReadOnly, Why: "definition"},
		{Path: "/w/out", Access: bawn.ReadWrite, Why: "definition"}, {Path: "/w/secret", Access: bawn.Hidden, Why: "--deny"},
	}[1:]
	if diff := cmp.Diff(want, got.Isolation.Mounts); diff != "" {
		t.Error(diff)
	}
	e := got.Isolation.Egress
	if !slices.Equal(e.Hosts, []string{"registry.npmjs.org:443"}) || e.HTTP != nil || e.Git != nil || got.Isolation.Resources.MemoryMB != 256 {
		t.Errorf("%+v", got.Isolation)
	}
	// What the parent limits and the child doesn't name must not be asked about.
	if !slices.Contains(e.Closed, "api.example.org") || !slices.Contains(e.Closed, "git.example.org:22,443") {
		t.Errorf("closed is %q; the parent's limits are gone", e.Closed)
	}
	if len(narrowed) != 3 { // /w/secret, and the two closed hosts
		t.Errorf("%+v", narrowed)
	}
}

// TestDefinitionCannotWiden asks for more of each thing in turn.
func TestDefinitionCannotWiden(t *testing.T) {
	for name, more := range map[string]func(*bawn.Session){
		"mode":       func(s *bawn.Session) { s.Mode = bawn.ModePermissive },
		"autonomy":   func(s *bawn.Session) { s.Autonomy = bawn.AutonomyFull },
		"provider":   func(s *bawn.Session) { s.Provider = "none" },
		"workspace":  func(s *bawn.Session) { s.Isolation.Workspace = "/h" },
		"mounts":     func(s *bawn.Session) { s.Isolation.Mounts[1].Access = bawn.ReadWrite },
		"network":    func(s *bawn.Session) { s.Isolation.Network = bawn.NetworkFull },
		"egress":     func(s *bawn.Session) { s.Isolation.Egress.HTTP[0] = "api.example.org GET /**" },
		"more hosts": func(s *bawn.Session) { s.Isolation.Egress.Hosts[0] = "*.npmjs.org:1-9999" },
		"a limit less": func(s *bawn.Session) {
			s.Isolation.Egress.HTTP[0] = "b.example.org GET /"
			s.Isolation.Egress.Hosts[1] = "api.example.org"
		},
		"git":           func(s *bawn.Session) { s.Isolation.Egress.Git[0] = "git.example.org push team/* refs/**" },
		"proxy":         func(s *bawn.Session) { s.Isolation.Egress.Proxy = "http://elsewhere.example:3128" },
		"host ports":    func(s *bawn.Session) { s.Isolation.Egress.HostPorts[0] = "5432:22" },
		"ports":         func(s *bawn.Session) { s.Isolation.Egress.Ports[0] = "80:3000" },
		"secrets":       func(s *bawn.Session) { s.Isolation.Egress.Secrets[0] = "*" },
		"ask":           func(s *bawn.Session) { s.Isolation.Egress.Ask *= 2 },
		"connections":   func(s *bawn.Session) { s.Isolation.Egress.MaxConns = 0 },
		"out":           func(s *bawn.Session) { s.Isolation.Egress.MaxOutMB = 0 },
		"secret uses":   func(s *bawn.Session) { s.Isolation.Egress.MaxUses = 0 },
		"lent":          func(s *bawn.Session) { s.Isolation.Egress.MaxLentMB = 61 },
		"env":           func(s *bawn.Session) { s.Isolation.Env[0] = "*" },
		"set env":       func(s *bawn.Session) { s.Isolation.SetEnv = []string{"CI=0", "LC_ALL=C"} },
		"caches":        func(s *bawn.Session) { s.Isolation.Caches = bawn.CacheShared },
		"cache dirs":    func(s *bawn.Session) { s.Isolation.CacheDirs[0] = "/h" },
		"devices":       func(s *bawn.Session) { s.Isolation.Devices[0] = "sda" },
		"protect":       func(s *bawn.Session) { s.Isolation.Protect = false },
		"docker api":    func(s *bawn.Session) { s.Isolation.DockerAPI = true },
		"cpu shares":    func(s *bawn.Session) { s.Isolation.Resources.CPUShares = 0 },
		"cpus":          func(s *bawn.Session) { s.Isolation.Resources.CPUs = 0 },
		"memory":        func(s *bawn.Session) { s.Isolation.Resources.MemoryMB = 0 },
		"tmp":           func(s *bawn.Session) { s.Isolation.Resources.TmpMB = 65 },
		"processes":     func(s *bawn.Session) { s.Isolation.Resources.PIDs = 0 },
		"open files":    func(s *bawn.Session) { s.Isolation.Resources.OpenFiles = 0 },
		"size of files": func(s *bawn.Session) { s.Isolation.Resources.FileSizeMB = 0 },
		"time":          func(s *bawn.Session) { s.Isolation.Resources.Timeout = 0 },
	} {
		t.Run(name, func(t *testing.T) {
			p, asked := parent(), parent()
			asked.ID = "c"
			more(&asked)
			got, narrowed := child(t, p, more)
			if asked.Parent = "p"; cmp.Equal(asked, got) || len(narrowed) == 0 {
				t.Errorf("it was given: %+v", narrowed)
			}
			for _, n := range narrowed {
				if n.Attribute == "" || n.Asked == n.Given || n.Why == "" {
					t.Errorf("%+v tells nothing", n)
				}
			}
		})
	}
	if got, narrowed := child(t, parent(), func(*bawn.Session) {}); len(narrowed) > 0 || got.Parent != "p" {
		t.Errorf("control: who asks for what the parent has gets less: %+v", narrowed)
	}
}

func TestNothingInCommon(t *testing.T) {
	strict, plan := bawn.Session{ID: "p", Mode: bawn.ModeStrict}, bawn.Session{ID: "c", Mode: bawn.ModePlan, Autonomy: bawn.AutonomyLimited}
	landlock := bawn.Session{ID: "c", Provider: "landlock"}
	for name, pair := range map[string][2]bawn.Session{"mode": {strict, plan}, "provider": {{ID: "p", Provider: "native"}, landlock}} {
		for _, order := range [][2]bawn.Session{pair, {pair[1], pair[0]}} {
			got, _, err := Meet(order[0], order[1])
			var none *MeetError
			if pair[0].ID == "p" && (!errors.As(err, &none) || none.Attribute != name || !strings.Contains(err.Error(), none.Remedy)) {
				t.Errorf("%s: %v; want a MeetError", name, err)
			}
			if got.ID != "" {
				t.Errorf("%s: a refusal gives %+v", name, got)
			}
		}
	}
}

func TestProviders(t *testing.T) {
	enforces := func(strengths ...bawn.Strength) (caps []bawn.Capability) {
		for i, s := range strengths {
			caps = append(caps, bawn.Capability{Attribute: []string{"fs.write", "net.none"}[i], Strength: s})
		}
		return caps
	}
	known := Providers{
		"native": enforces(bawn.Enforced, bawn.Enforced), "landlock": enforces(bawn.Enforced, bawn.Partly), "files": enforces(bawn.Enforced), "docker": enforces(bawn.Partly, bawn.Enforced),
	}
	for _, tt := range [][3]string{
		{"native", "landlock", "native"}, {"landlock", "native", "native"}, {"landlock", "files", "landlock"}, {"files", "landlock", "landlock"}, {"native", "native", "native"}, {"", "landlock", "landlock"},
		{"", "", ""}, {"none", "", "none"}, {"none", "docker", "docker"}, {"landlock", "docker", "!"}, {"native", "unheard of", "!"}, {"unheard of", "native", "!"},
	} {
		got, _, err := known.Meet(bawn.Session{ID: "p", Provider: tt[0]}, bawn.Session{ID: "c", Provider: tt[1]})
		if (err != nil) != (tt[2] == "!") || err == nil && got.Provider != tt[2] {
			t.Errorf("%q and %q give %q, %v; want %q", tt[0], tt[1], got.Provider, err, tt[2])
		}
	}
}

// TestWhatCannotBeRead: on neither side, in whatever place.
func TestWhatCannotBeRead(t *testing.T) {
	for name, wrong := range map[string]func(*bawn.Session){
		"mode":           func(s *bawn.Session) { s.Mode = 99 },
		"autonomy":       func(s *bawn.Session) { s.Autonomy = 99 },
		"network":        func(s *bawn.Session) { s.Isolation.Network = 99 },
		"caches":         func(s *bawn.Session) { s.Isolation.Caches = 99 },
		"access":         func(s *bawn.Session) { s.Isolation.Mounts[0].Access = 99 },
		"mount":          func(s *bawn.Session) { s.Isolation.Mounts[0].Path = "/w/../x" },
		"cache dir":      func(s *bawn.Session) { s.Isolation.CacheDirs[0] = "w" },
		"workspace":      func(s *bawn.Session) { s.Isolation.Workspace = "/w\x00" },
		"device":         func(s *bawn.Session) { s.Isolation.Devices[0] = "../etc" },
		"env":            func(s *bawn.Session) { s.Isolation.Env[0] = "A=b" },
		"no env":         func(s *bawn.Session) { s.Isolation.Env[0] = "" },
		"set env":        func(s *bawn.Session) { s.Isolation.SetEnv[0] = "A" },
		"set pattern":    func(s *bawn.Session) { s.Isolation.SetEnv[0] = "A*=b" },
		"negative limit": func(s *bawn.Session) { s.Isolation.Resources.PIDs = -1 },
		"negative ask":   func(s *bawn.Session) { s.Isolation.Egress.Ask = -1 },
		"cpus":           func(s *bawn.Session) { s.Isolation.Resources.CPUs = math.NaN() },
		"endless cpus":   func(s *bawn.Session) { s.Isolation.Resources.CPUs = math.Inf(1) },
		"host":           func(s *bawn.Session) { s.Isolation.Egress.Hosts[0] = "*" },
		"closed":         func(s *bawn.Session) { s.Isolation.Egress.Closed = []string{"*"} },
		"http":           func(s *bawn.Session) { s.Isolation.Egress.HTTP[0] = "x" },
		"git":            func(s *bawn.Session) { s.Isolation.Egress.Git[0] = "x" },
		"host port":      func(s *bawn.Session) { s.Isolation.Egress.HostPorts[0] = "0" },
		"port":           func(s *bawn.Session) { s.Isolation.Egress.Ports[0] = "0" },
		"proxy":          func(s *bawn.Session) { s.Isolation.Egress.Proxy = "x" },
		"secret":         func(s *bawn.Session) { s.Isolation.Egress.Secrets[0] = "n*" },
		"no secret":      func(s *bawn.Session) { s.Isolation.Egress.Secrets[0] = "" },
	} {
		t.Run(name, func(t *testing.T) {
			good, bad := parent(), parent()
			good.ID = "good"
			wrong(&bad)
			for _, pair := range [][2]bawn.Session{{good, bad}, {bad, good}} {
				if got, _, err := Meet(pair[0], pair[1]); err == nil || got.ID != "" {
					t.Errorf("%+v, %v; want a refusal", got, err)
				}
			}
		})
	}
	for _, ids := range [][2]string{{"", "c"}, {"p", "p"}} {
		if _, _, err := Meet(bawn.Session{ID: ids[0]}, bawn.Session{ID: ids[1]}); err == nil {
			t.Errorf("%q starts %q", ids[0], ids[1])
		}
	}
}

func TestOpenAndProtected(t *testing.T) {
	got := Open([]string{"ssh", "gh", "/h/.config"}, []string{"ssh", "aws", "/h/.config/x", "/h", "/v"})
	if want := []string{"/h/.config", "/h/.config/x", "ssh"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if Open(nil, []string{"ssh"}) != nil || Open([]string{"ssh"}, nil) != nil {
		t.Error("an empty list opens something")
	}
	if got := Protected([]string{"a", "b"}, []string{"b", "c"}); !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Errorf("got %q", got)
	}
}
