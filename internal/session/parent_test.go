package session

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/config"
)

// above is a parent whose guest works in dir/project, sees dir/tools, and has files
// of its own in the way.
func above(t *testing.T) (k *Parent, dir string) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"project/sub", "project/.git", "tools", "secret"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	s := parent()
	s.Isolation.Workspace = dir + "/project"
	s.Isolation.Mounts = []bawn.Mount{{Path: dir + "/project", Access: bawn.ReadWrite}, {Path: dir + "/project/tmp", Access: bawn.Private}}
	return &Parent{
		Session: s, Depth: 1, Dir: dir + "/project", Git: []bawn.GitDir{{Path: dir + "/project/.git"}},
		Places: []bawn.Mount{
			{Path: dir + "/project", Access: bawn.ReadWrite}, {Path: dir + "/tools", Access: bawn.ReadOnly}, {Path: dir + "/project/tmp", Access: bawn.Private},
			{Path: dir + "/project/.git", Access: bawn.Private}, {Path: dir + "/project/.env", Access: bawn.Hidden}, {Path: dir + "/project/other", Access: bawn.Private},
		},
	}, dir
}

// TestParentSees: what the parent hides below a place, or has of its own there, is
// no reason not to see the place; what it does not see stays unseen.
func TestParentSees(t *testing.T) {
	k, dir := above(t)
	for name, want := range map[string]bool{"/tools": true, "/project/sub": true, "/project/.env": false, "/secret": false, "": false, "/project/tmp": false} {
		if got := k.Sees(dir + name); got != want {
			t.Errorf("%q is seen: %v; want %v", name, got, want)
		}
	}
	if k.Sees(dir + "/project") {
		t.Error("a place of neither its isolation nor its git directories lies below, and it is seen")
	}
	k.Places = k.Places[:len(k.Places)-1]
	if !k.Sees(dir + "/project") {
		t.Error("the workspace isn't seen")
	}
}

// TestParentDirectory: a guest starts where its session works, and learns nothing
// of other places, not whether they are there.
func TestParentDirectory(t *testing.T) {
	k, dir := above(t)
	if got, err := k.Directory(dir + "/project/sub/../sub"); err != nil || got != dir+"/project/sub" {
		t.Errorf("%q, %v", got, err)
	}
	if err := os.Symlink(dir+"/secret", dir+"/project/link"); err != nil {
		t.Fatal(err)
	}
	var said string
	for _, name := range []string{"/secret", "/nothing", "/tools", "/project/none", "/project/link"} {
		_, err := k.Directory(dir + name)
		var refused *RefusedError
		if !errors.As(err, &refused) || refused.Hint == "" || said != "" && err.Error() != said {
			t.Errorf("%s: %v; want %q", name, err, said)
		}
		said = err.Error()
	}
}

// TestClampLeadsAndTellsNothing: mounts count where links lead, what the parent does not see
// is not given, and where a link leads is not told.
func TestClampLeadsAndTellsNothing(t *testing.T) {
	k, dir := above(t)
	k.Places = k.Places[:len(k.Places)-1]
	for name, to := range map[string]string{"tools": dir + "/tools", "out": dir + "/secret"} {
		if err := os.Symlink(to, dir+"/project/"+name); err != nil {
			t.Fatal(err)
		}
	}
	asked := copyOf(k.Session)
	asked.ID = "c"
	asked.Isolation.Mounts = []bawn.Mount{
		{Path: dir + "/project", Access: bawn.ReadWrite}, {Path: dir + "/project/tools", Access: bawn.ReadWrite}, {Path: dir + "/project/out", Access: bawn.ReadOnly}, {Path: dir + "/project/sub", Access: bawn.Hidden},
	}
	given, narrowed, err := k.Clamp(asked, nil)
	if err != nil {
		t.Fatal(err)
	}
	table := tableOf(given.Isolation)
	for name, want := range map[string]power{"/project": readWrite, "/project/sub": hidden, "/secret": byDefault, "/project/out": readWrite} {
		if v, _ := table.at(dir + name); v != want {
			t.Errorf("%s is %s; want %s", name, powerNames[v], powerNames[want])
		}
	}
	var told []string
	for _, n := range narrowed {
		told = append(told, n.Asked)
	}
	if all := strings.Join(told, "\n"); !strings.Contains(all, dir+"/project/out") || strings.Contains(all, "secret") {
		t.Errorf("the guest is told %q", told)
	}
}

// TestClampRefuses where nothing is left of what was asked for.
func TestClampRefuses(t *testing.T) {
	k, dir := above(t)
	var refused *RefusedError
	asked := copyOf(k.Session)
	asked.ID, asked.Isolation.Workspace = "c", dir+"/secret"
	if _, _, err := k.Clamp(asked, nil); !errors.As(err, &refused) {
		t.Errorf("another workspace: %v", err)
	}
	asked = copyOf(k.Session)
	asked.ID = "c"
	asked.Isolation.Network, asked.Isolation.Egress.Hosts = bawn.NetworkAllowlist, []string{"a b:c"}
	if _, _, err := k.Clamp(asked, nil); !errors.As(err, &refused) || errors.Unwrap(refused) == nil {
		t.Errorf("what can't be compared: %v", err)
	}
}

// TestVerify: a plan that shows more than the parent's is refused, whatever made
// it so; what has gone shows nothing.
func TestVerify(t *testing.T) {
	k, dir := above(t)
	var none *Parent
	if err := none.Verify("native", []bawn.Mount{{Path: "/", Access: bawn.ReadWrite}}); err != nil {
		t.Errorf("without a parent: %v", err)
	}
	if err := k.Verify("native", []bawn.Mount{{Path: dir + "/tools", Access: bawn.ReadOnly}, {Path: dir + "/gone", Access: bawn.ReadOnly}}); err != nil {
		t.Errorf("no more than the parent: %v", err)
	}
	for what, m := range map[string]bawn.Mount{
		"what it sees, to write": {Path: dir + "/tools", Access: bawn.ReadWrite}, "what it does not see": {Path: dir + "/secret", Access: bawn.ReadOnly},
	} {
		err := k.Verify("native", []bawn.Mount{m})
		var refused *RefusedError
		if !errors.As(err, &refused) || strings.Contains(err.Error(), "secret") || m.Access == bawn.ReadWrite && !strings.Contains(err.Error(), "tools") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := k.Verify("host", nil); err == nil {
		t.Error("another provider is taken")
	}
}

// TestHas is about flags that were given.
func TestHas(t *testing.T) {
	s := Spec{Given: []string{"net"}, Flags: config.Flags{Only: true}}
	if !s.Has("net") || s.Has("only") {
		t.Errorf("%+v", s)
	}
}

// TestSpecThatIsNone: lengths and texts that are wrong are errors, and so is what
// JSON can't hold.
func TestSpecThatIsNone(t *testing.T) {
	late := &Spec{Argv: Words{"x"}, Parent: &Parent{Session: bawn.Session{ID: "a", Started: time.Date(20000, 1, 1, 0, 0, 0, 0, time.UTC)}, Depth: 1}}
	if _, err := late.Encode(); err == nil {
		t.Error("a time that JSON has no form for is sent")
	}
	for _, text := range []string{`{"Argv":1}`, `{"Argv":["%"]}`, `{"Argv":["eA=="],"New":1}`, `{"Argv":["eA=="],"Argv":["eA=="]}`, ``} {
		framed := append(binary.BigEndian.AppendUint32(nil, uint32(len(text))), text...)
		if s, err := Receive(bytes.NewReader(framed)); err == nil {
			t.Errorf("%s is %+v", text, s)
		}
	}
	var w Words
	if err := json.Unmarshal([]byte(`{}`), &w); err == nil {
		t.Error("an object is a list of words")
	}
}
