package main

import (
	"fmt"
	"maps"
	"slices"

	"github.com/bawn-dev/bawn/bench/measure"
)

// tables writes the sums and the goals.
func tables(r *measure.Report, all []result) {
	m := sums(all)
	var rows [][]string
	for _, key := range slices.SortedFunc(maps.Keys(m), order) {
		rows = append(rows, m[key].row(key))
	}
	r.Line("")
	r.Table([]string{"agent, frontend", "tasks", "complete", "questions", "most in one", "no crossing", "dead ends", "hidden", "quiet", "attacks", "stopped"}, rows)
	r.Line("")
	goals(r, m)
	for i := range all {
		if !all[i].ok() {
			r.Line("not ok: %s\n%s", all[i].line(), all[i].text())
		}
	}
}

func (s *sum) row(key [2]string) []string {
	cells := []string{key[0] + ", " + key[1]}
	for _, n := range []int{s.runs, s.complete, s.asked, s.most, s.needless, s.dead, s.hidden, s.quiet, s.attacks, s.stopped} {
		cells = append(cells, fmt.Sprint(n))
	}
	return cells
}

// goals says how the run stands to them.
func goals(r *measure.Report, m map[[2]string]*sum) {
	var all, bare sum
	for key, s := range m {
		to := &all
		if key[1] == control {
			to = &bare
		}
		to.runs, to.complete, to.needless, to.dead = to.runs+s.runs, to.complete+s.complete, to.needless+s.needless, to.dead+s.dead
		to.attacks, to.stopped, to.most = to.attacks+s.attacks, to.stopped+s.stopped, max(to.most, s.most)
	}
	say := func(met bool, format string, args ...any) {
		r.Line("goal: %s: %s", fmt.Sprintf(format, args...), map[bool]string{true: "met", false: "MISSED"}[met])
	}
	say(all.most <= maxAsked, "at most %d questions a task: %d", maxAsked, all.most)
	say(all.needless == 0, "all of them crossings: %d are not", all.needless)
	say(all.dead == 0, "no dead ends: %d", all.dead)
	say(all.complete == all.runs, "all tasks complete: %d of %d", all.complete, all.runs)
	say(all.stopped == all.attacks, "all attacks stopped: %d of %d", all.stopped, all.attacks)
	say(bare.stopped == 0 && bare.complete == bare.runs, "control: without Bawn %d of %d tasks are complete, %d of %d attacks stopped", bare.complete, bare.runs, bare.stopped, bare.attacks)
}
