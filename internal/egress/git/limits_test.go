package git

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
)

// TestLimits: nothing that a guest sends makes us hold more than we want to.
func TestLimits(t *testing.T) {
	var many []string
	for i := range 10 {
		many = append(many, fmt.Sprintf("%s %s refs/heads/%d", zero, idB, i))
	}
	many[0] += caps
	commands := pkt(append(many, "")...) + packOf()
	bomb := pkt(goodHead, "") + packOf(object{kind: objBlob, text: make([]byte, 1<<20)})
	big := pkt(goodHead, "") + packOf(object{kind: objCommit, text: make([]byte, maxCommit+1)})
	tests := []struct {
		name, body, want string
		limits           Limits
	}{
		{"updates", commands, "more commands", Limits{Updates: 9}},
		{"bytes of commands", commands, "bytes of commands", Limits{Commands: 500}},
		{"inflated", bomb, "inflates", Limits{Inflated: 1 << 19}},
		{"spool", pkt(goodHead, "") + packOf(object{kind: objBlob, text: noise(1 << 16)}), "held back", Limits{Spool: 1 << 15}},
		{"commit", big, "want at most", Limits{}},
	}
	for _, tt := range tests {
		in := Inspector{Limits: tt.limits, Dir: t.TempDir()}
		if op, _, err := in.Push(Operation{}, strings.NewReader(tt.body)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %+v, %v; want %q", tt.name, op, err, tt.want)
		}
	}
	op, again, err := Inspector{}.Push(Operation{}, strings.NewReader(commands))
	if err != nil || len(op.Updates) != 10 {
		t.Fatalf("control: %v", err)
	}
	again.Close()
}

// noise can't be compressed.
func noise(n int) []byte {
	out, x := make([]byte, n), uint32(7)
	for i := range out {
		x = x*1664525 + 1013904223
		out[i] = byte(x >> 24)
	}
	return out
}

// TestSpool: a pack whose commits come last is held back on disk, where nobody
// finds it, and then goes on as it came.
func TestSpool(t *testing.T) {
	dir := t.TempDir()
	one := commitText("one", idA)
	two := commitText("two", commitID(one, 40))
	pack := packOf(object{kind: objBlob, text: noise(2 * spoolMemory)}, object{kind: objCommit, text: one},
		object{kind: objRefDelta, baseID: commitID(two, 40), text: insertion(two, two)}, object{kind: objBlob, text: noise(3)},
		object{kind: objRefDelta, baseID: commitID(one, 40), text: insertion(one, two)})
	body := pkt(idA+" "+commitID(two, 40)+" refs/heads/x"+caps, "") + pack + "behind"
	op, again, err := Inspector{Dir: dir}.Push(Operation{}, strings.NewReader(body))
	if err != nil || !op.Updates[0].FastForward {
		t.Fatalf("got %+v, %v", op, err)
	}
	held := again.(replay).Closer.(*spool)
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 || held.file == nil {
		t.Errorf("in the directory: %v, %v; a file is used: %v", entries, err, held.file != nil)
	}
	if got, err := io.ReadAll(again); err != nil || string(got) != body {
		t.Errorf("the replay differs: %v", err)
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
	if _, err := held.file.Stat(); err == nil {
		t.Error("the file is open still")
	}
}

func TestPatch(t *testing.T) {
	base := append([]byte("base text"), make([]byte, 100)...)[:9] // with room behind it
	for _, tt := range []struct {
		program []byte
		want    string
	}{
		{[]byte{9, 4, 0x90, 4}, "base"},
		{[]byte{9, 4, 0x91, 5, 4}, "text"},
		{[]byte{9, 6, 0x90, 4, 2, 'x', 'y'}, "basexy"},
		{[]byte{9, 0}, ""},
	} {
		if got, err := patch(base, tt.program); string(got) != tt.want || err != nil {
			t.Errorf("%v: got %q, %v; want %q", tt.program, got, err, tt.want)
		}
	}
	for name, program := range map[string][]byte{
		"nothing": {}, "another base": {8, 4, 0x90, 4}, "beyond the base": {9, 5, 0x91, 5, 5}, "from beyond": {9, 1, 0x91, 10, 1}, "too long": {9, 3, 0x90, 4}, "too short": {9, 5, 0x90, 4},
		"insert nothing": {9, 0, 0}, "insert cut off": {9, 4, 4, 'x'}, "copy cut off": {9, 4, 0x91, 5}, "64 KiB": {9, 4, 0x80}, "size cut off": {9, 0x80}, "huge": {9, 0xff, 0xff, 0xff, 0xff, 0x7f, 0x90, 4},
	} {
		if got, err := patch(base, program); err == nil {
			t.Errorf("%s: got %q", name, got)
		}
	}
}

// TestEarly: a push that is refused for its refs is not read further, and one
// that is not refused early is not proven by that.
func TestEarly(t *testing.T) {
	var rules []Rule
	in := Inspector{Early: func(op Operation) error {
		if ok, reason := Allow(op, rules); !ok {
			return errors.New(reason)
		}
		return nil
	}}
	body := strings.NewReader(pkt(goodHead, "") + "PACK")
	if _, _, err := in.Push(Operation{Repo: "r"}, io.MultiReader(body, failing{t})); err == nil {
		t.Error("it is not refused")
	}
	rules = []Rule{{Push: true, Repo: "r", Ref: "refs/heads/x"}}
	op, again, err := in.Push(Operation{Repo: "r"}, strings.NewReader(pkt(goodHead, "")+packOf()))
	if err != nil {
		t.Fatal(err)
	}
	again.Close()
	if ok, _ := Allow(op, rules); ok || op.Updates[0].FastForward {
		t.Errorf("%+v is permitted", op)
	}
}

// TestPacksAtATime: packs that wait to be sent, or to go on, take the room of
// others, until they are closed or fail.
func TestPacksAtATime(t *testing.T) {
	in := Inspector{Packs: make(chan struct{}, 2)}
	push := func() (io.Closer, error) {
		_, again, err := in.Push(Operation{Repo: "r"}, strings.NewReader(pkt(goodHead, "")+packOf()))
		return again, err
	}
	var open []io.Closer
	for range 2 {
		c, err := push()
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, c)
	}
	if _, err := push(); !errors.Is(err, errPacks) {
		t.Errorf("the third: %v", err)
	}
	for _, c := range open {
		c.Close()
		c.Close()
	}
	for range 3 { // what fails gives its room back
		if _, _, err := in.Push(Operation{Repo: "r"}, strings.NewReader(pkt(goodHead, "")+"PACKxxxx")); err == nil || errors.Is(err, errPacks) {
			t.Errorf("a bad pack: %v", err)
		}
	}
	c, err := push()
	if err != nil {
		t.Fatalf("after the others: %v", err)
	}
	c.Close()
}

type failing struct{ t *testing.T }

func (f failing) Read([]byte) (int, error) {
	f.t.Error("the pack is read")
	return 0, io.EOF
}

// FuzzPush: whatever comes, what is accepted is replayed byte for byte, its
// refs are refs, and it is a fast-forward only if a commit in it says so.
func FuzzPush(f *testing.F) {
	one := commitText("one", idA)
	f.Add([]byte(pkt(goodHead, "") + packOf()))
	f.Add([]byte(pkt(idA+" "+commitID(one, 40)+" refs/heads/x"+caps, "") + packOf(object{kind: objCommit, text: one})))
	f.Add([]byte(pkt(zero+" "+idB+" refs/heads/x"+caps, "") + packOf(object{kind: objRefDelta, baseID: idA, text: insertion(one, one)})))
	f.Add([]byte("0000"))
	f.Add([]byte(pkt("push-cert\x00atomic\n", "certificate version 0.1\n", "\n", idA+" "+zero+" refs/heads/x\n", signature+"\n", "push-cert-end\n", "")))
	f.Fuzz(func(t *testing.T, body []byte) {
		in := Inspector{Limits: Limits{Spool: 1 << 20, Inflated: 1 << 22}}
		op, again, err := in.Push(Operation{}, bytes.NewReader(body))
		if err != nil {
			return
		}
		defer again.Close()
		got, err := io.ReadAll(again)
		if err != nil || !bytes.HasPrefix(body, got) || len(got) < len(body) && slices.ContainsFunc(op.Updates, func(u Update) bool { return !u.Delete() }) {
			t.Errorf("replayed %q of %q, %v", got, body, err)
		}
		for _, u := range op.Updates {
			if CheckRef(u.Ref) != nil || !bytes.Contains(body, []byte(u.Ref)) || !bytes.Contains(body, []byte(u.Old+" "+u.New)) {
				t.Errorf("update %+v is not in %q", u, body)
			}
		}
	})
}

// FuzzPack reads packs without a push around them.
func FuzzPack(f *testing.F) {
	one := commitText("one", idA)
	f.Add([]byte(packOf(object{kind: objCommit, text: one}, object{kind: objOfsDelta, base: 1, text: insertion(one, one)})))
	f.Add([]byte(packOf(object{kind: objRefDelta, baseID: commitID(one, 40), text: insertion(one, one)}, object{kind: objCommit, text: one})))
	f.Add([]byte(packOf(object{kind: objBlob, text: make([]byte, 1000)}, object{kind: objTree}, object{kind: objTag})))
	f.Fuzz(func(t *testing.T, pack []byte) {
		held := &spool{max: 1 << 20}
		known := &Graph{}
		u := Update{Old: idA, New: commitID(one, 40), Ref: "refs/heads/x"}
		steps := 1000
		walks := map[int]*walk{0: newWalk(u, nil, &steps, known)}
		err := readCommits(walks, known, 40, bytes.NewReader(pack), held, Limits{Inflated: 1 << 22})
		if _, ok := known.get(u.New); walks[0].found && !ok {
			t.Errorf("proven without the commit; %v", err)
		}
	})
}

// FuzzPatch applies deltas that are not what they say.
func FuzzPatch(f *testing.F) {
	f.Add([]byte("base"), insertion([]byte("base"), []byte("text")))
	f.Add([]byte("base"), []byte{4, 4, 0x90, 4})
	f.Add([]byte("base"), []byte{4, 4, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, base, program []byte) {
		if out, err := patch(base, program); err == nil && len(out) > maxCommit {
			t.Errorf("%d bytes", len(out))
		}
	})
}
