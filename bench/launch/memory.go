package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/bawn-dev/bawn/bench/measure"
)

// memoryBudget is what one session's bawn may occupy at most, in KiB.
const memoryBudget = 25 * 1024

// A load is what a session does while its memory is watched.
type load struct {
	name string
	argv []string
}

// loads are a session that waits, and one in which every file that is created
// passes the supervisor.
var loads = []load{
	{"waits (sleep 2)", []string{"sleep", "2"}},
	{"creates 2,000 files", []string{"sh", "-c", `i=0; while [ $i -lt 2000 ]; do : >f$i; i=$((i+1)); done; sleep 0.2; rm -f f[0-9]*`}},
}

// writePeaks adds the peak memory of bawn for each user and load. It errs
// where one exceeds the budget.
func writePeaks(w *measure.Report, t *tools, whos []measure.Who) error {
	w.Line("\npeak resident memory of bawn, one session (budget %d MiB)", memoryBudget/1024)
	var rows [][]string
	var over error
	for _, who := range whos {
		for _, l := range loads {
			peak, err := peakOf(who.Command(append([]string{t.bawn, "run", "-q", "--net", "none", "--"}, l.argv...)...))
			if err == nil && peak > memoryBudget {
				err = fmt.Errorf("bawn as %s, session that %s: peak of %.1f MiB; the budget is %d", who.Name, l.name, float64(peak)/1024, memoryBudget/1024)
			}
			over = errors.Join(over, err)
			rows = append(rows, []string{"as " + who.Name + ", session that " + l.name, fmt.Sprintf("%.1f", float64(peak)/1024)})
		}
	}
	w.Table([]string{"session", "MiB"}, rows)
	return over
}

// peakOf runs a program and returns the highest VmHWM (proc_pid_status(5)) of
// its own process, in KiB.
func peakOf(cmd *exec.Cmd) (int, error) {
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	peak := 0
	for {
		peak = max(peak, highWater(cmd.Process.Pid))
		select {
		case err := <-ended:
			if err == nil && peak == 0 {
				err = fmt.Errorf("%q ended before its memory could be read", cmd.Args)
			}
			return peak, err
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// highWater reads VmHWM, or 0 of a process that is gone.
func highWater(pid int) int {
	text, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			n, _ := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(value), " kB"))
			return n
		}
	}
	return 0
}
