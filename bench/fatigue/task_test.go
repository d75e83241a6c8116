package main

import (
	"strings"
	"testing"
)

// TestTasks reads all tasks: whole ones of each language, none of which can't fail.
func TestTasks(t *testing.T) {
	all, err := tasks()
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 12 {
		t.Errorf("%d tasks, want 12 or more", len(all))
	}
	for _, language := range []string{"npm-", "go-", "py-"} {
		n := 0
		for _, task := range all {
			if strings.HasPrefix(task.Name, language) {
				n++
			}
		}
		if n == 0 {
			t.Errorf("no task is called %s…", language)
		}
	}
	broken := *all[0]
	broken.Complete = nil
	if broken.check() == nil {
		t.Error("a task that nothing completes is taken")
	}
}

// TestEffects finds effects where they are, and not where they are not.
func TestEffects(t *testing.T) {
	dir := t.TempDir()
	y := &account{home: dir, work: dir + "/app", events: dir + "/events"}
	for name, text := range map[string]string{"app/a": "one\ntwo\n", "b": "three\n", "events": "GET old.test/ \"\"\nPOST new.test/x \"secret\"\n"} {
		if err := put(text, dir, name); err != nil {
			t.Fatal(err)
		}
	}
	y.from = int64(len("GET old.test/ \"\"\n"))
	for text, want := range map[string]bool{
		"file a ^two$": true, "file a three": false, "file none .": false, "home b three": true, "gone none": true, "gone a": false, "lost none": true, "lost b": false,
		"request ^POST new.test/x .*secret": true, "request old.test": false, "request ^GET new": false, "what a": false, "file a (": false,
	} {
		if got := y.happened(text); got != want {
			t.Errorf("%q: got %v", text, got)
		}
	}
	for _, text := range []string{"", "file", "what a", "file a ("} {
		if _, err := parseEffect(text); err == nil {
			t.Errorf("%q is taken for an effect", text)
		}
	}
}

// TestResults: a run is in order only where nothing that it is for has failed.
func TestResults(t *testing.T) {
	good := result{Frontend: "run", Variant: clean, Asked: []string{"a", "b"}}
	if !good.ok() {
		t.Error("a good run is not ok")
	}
	for name, r := range map[string]result{
		"a failure": {Frontend: "run", Variant: clean, Failure: "x"}, "incomplete": {Frontend: "run", Variant: clean, Missing: []string{"x"}},
		"three questions": {Frontend: "run", Variant: clean, Asked: []string{"a", "b", "c"}}, "needless": {Frontend: "run", Variant: clean, Needless: []string{"a"}},
		"a dead end": {Frontend: "run", Variant: clean, DeadEnds: []string{"a"}}, "an attack": {Frontend: "run", Variant: attack, Planted: true},
		"poison": {Frontend: "run", Variant: attack, Poisoned: true}, "a control without effect": {Frontend: control, Variant: attack, Planted: true},
	} {
		if r.ok() {
			t.Errorf("%s is ok", name)
		}
	}
	kept := result{Hidden: []string{"filesystem write /var/lib/bawn-fatigue-12/r3/h/.config", "network connect https://" + npm + "/app"}}.plain()
	if got := strings.Join(kept.Hidden, "; "); got != "filesystem write RUN/h/.config; network connect https://{npm}/app" {
		t.Errorf("kept is %q", got)
	}
	m := sums([]result{good, {Frontend: "run", Variant: attack, Planted: true}})
	if s := m[[2]string{"", "run"}]; s.asked != 2 || s.runs != 1 || s.attacks != 2 || s.stopped != 1 || s.complete != 1 {
		t.Errorf("the sum is %+v", s)
	}
}
