package maker

import (
	"os/exec"
	"testing"
)

// TestGone: a process that runs is not gone, and one that has ended is, also where
// another has its PID.
func TestGone(t *testing.T) {
	me, err := Self()
	if err != nil || me.Gone() || me.Space == "" {
		t.Fatalf("this process: %+v, gone %v, %v", me, me.Gone(), err)
	}
	reused := me
	reused.Start++
	if !reused.Gone() {
		t.Error("another process with the same PID counts as the maker")
	}
	c := exec.Command("true")
	if err := c.Run(); err != nil {
		t.Fatal(err)
	}
	if ended := (Maker{PID: c.Process.Pid, Start: me.Start}); !ended.Gone() {
		t.Errorf("%v has ended and is not gone", ended)
	}
}

// TestParse: what String writes is read, and nothing else.
func TestParse(t *testing.T) {
	if m, err := Parse(Maker{PID: 7, Start: 9}.String()); err != nil || m != (Maker{PID: 7, Start: 9}) {
		t.Errorf("%+v, %v", m, err)
	}
	for _, text := range []string{"", "7", "7:", ":9", "-1:9", "0:9", "7:x", "7:9:1"} {
		if m, err := Parse(text); err == nil {
			t.Errorf("%q: %+v", text, m)
		}
	}
}

// TestLabels: a guest's own labels stay, and can't replace those of the maker.
func TestLabels(t *testing.T) {
	got := Maker{PID: 7, Start: 9, Space: "s"}.Labels(map[string]string{"x": "y", LabelRole: "mine"}, "id", "child")
	want := map[string]string{"x": "y", LabelSession: "id", LabelMaker: "7:9", LabelSpace: "s", LabelRole: "child"}
	if len(got) != len(want) {
		t.Errorf("%v", got)
	}
	for k, v := range want {
		if got[k] != v {
			t.Errorf("%s: %q, want %q", k, got[k], v)
		}
	}
}
