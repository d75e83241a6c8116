//go:build linux

package sandboxtest_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	bawnwords "github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/sandbox/sandboxtest"
	"github.com/bawn-dev/bawn/internal/testenv"
)

// eat takes 160 MB, no process more than 40: one alone would be stopped by its
// rlimit, which is an error that it gets and no end.
const eat = `for i in 1 2 3 4; do dd if=/dev/zero of=/dev/null bs=40M count=9 & all="$all $!"; done; for i in $all; do wait $i || exit $?; done`

// TestNativeLimitsAreNamed runs into each limit and wants to be told which it
// was, three times: in words, in the line of --json and in the log. The control
// has more room and says nothing. Where only rlimits can be had nobody counts,
// and so nothing may be claimed.
func TestNativeLimitsAreNamed(t *testing.T) {
	t.Parallel()
	testenv.Need(t, "userns", "landlock", "seccomp", "notify")
	asEach(t, func(t *testing.T, f *sandboxtest.Fixtures) {
		groups := f.UID == 0
		if groups {
			testenv.Need(t, "cgroup")
		}
		for _, tt := range []struct {
			rule, remedy string
			code         int
			flags, room  []string
			argv         []string
			proof        bool
		}{
			{"limits:memory", "raise it with --memory", 137, []string{"--memory", "64"}, []string{"--memory", "600"}, []string{"sh", "-c", eat}, groups},
			{"limits:pids", "raise it with --pids", 0, []string{"--pids", "48"}, []string{"--pids", "500"}, []string{f.Victim, "swarm", "60"}, groups},
			{"limits:timeout", "raise it with --timeout", 124, []string{"--timeout", "1s"}, []string{"--timeout", "1h"}, []string{"sleep", "2"}, true},
			{"limits:size", "isolation.resources.file_size_mb", 153, nil, nil, []string{"sh", "-c", "exec dd if=/dev/zero of=big bs=1M count=16"}, true},
		} {
			t.Run(tt.rule, func(t *testing.T) {
				t.Parallel()
				if control := session(t, f, tt.room, tt.argv); tt.room != nil && (control.Exit != 0 || len(control.Limits) != 0 || control.Rule != "") {
					t.Fatalf("control: %+v", control)
				}
				if words := contenderNamed(t, "native").run(tt.flags...)(t, f, tt.argv...); strings.Contains(words.Stderr, "("+tt.rule+"); ") != tt.proof {
					t.Errorf("said %q; names the limit: want %v", words.Stderr, tt.proof)
				}
				got := session(t, f, tt.flags, tt.argv)
				if !tt.proof {
					if len(got.Limits) != 0 || got.Rule != "" {
						t.Errorf("claimed without proof: %+v", got)
					}
					return
				}
				if got.Exit != tt.code || got.Rule != tt.rule || len(got.Limits) != 1 || got.Limits[0]["rule"] != tt.rule || !strings.Contains(got.Limits[0]["remedy"].(string), tt.remedy) {
					t.Errorf("got %+v; want exit code %d and %s with a remedy", got, tt.code, tt.rule)
				}
			})
		}
	})
}

// ending is how a session ended, by its line of JSON and by the log.
type ending struct {
	Session string                   `json:"session"`
	Exit    int                      `json:"exit"`
	Error   struct{ Message string } `json:"error"`
	Limits  []map[string]any         `json:"limits"`
	Rule    string                   `json:"-"` // in the log
}

// session runs a session and looks it up in the log.
func session(t *testing.T, f *sandboxtest.Fixtures, flags, argv []string) ending {
	t.Helper()
	r := contenderNamed(t, "native").run(append([]string{"--json"}, flags...)...)(t, f, argv...)
	e := summary(t, r.Stderr)
	log := f.Exec(t, f.Install(t, bawn), "audit", "query", "--json", "--session", e.Session)
	var record struct {
		Event struct {
			Operation, Rule string
			Exit            *int
		}
	}
	lines := strings.Split(strings.TrimSpace(log.Stdout), "\n")
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &record); err != nil {
		t.Fatalf("log: %v in %q", err, log.Stdout)
	}
	if end := record.Event; end.Operation != "end" || end.Exit == nil || *end.Exit != e.Exit || e.Exit != r.Code {
		t.Fatalf("exit code %d, --json says %d and the log's last event %+v: %s", r.Code, e.Exit, end, log.Stderr)
	}
	e.Rule = record.Event.Rule
	return e
}

// summary is the line of JSON among what bawn said.
func summary(t *testing.T, text string) (e ending) {
	t.Helper()
	for line := range strings.Lines(text) {
		if json.Unmarshal([]byte(line), &e) == nil {
			return e
		}
	}
	t.Fatalf("no line of JSON in %q", text)
	return e
}

// TestNativeSaysWhatIsInPart: that a limit is less than it says is said at the first
// session, in words, and in JSON at each end; exactly where doctor says so.
func TestNativeSaysWhatIsInPart(t *testing.T) {
	testenv.Need(t, "userns", "landlock", "seccomp", "notify")
	asEach(t, func(t *testing.T, f *sandboxtest.Fixtures) {
		const attribute, sentence = "limits.memory", "bawn: note: enforced in part on this machine: "
		var report struct {
			Capabilities []bawnwords.Capability
			InPart       []bawnwords.Capability `json:"enforcedInPart"`
		}
		doctor := f.Exec(t, f.Install(t, bawn), "doctor", "--json")
		if err := json.Unmarshal([]byte(doctor.Stdout), &report); err != nil {
			t.Fatalf("%v: %s", err, doctor.Stderr)
		}
		isMemory := func(c bawnwords.Capability) bool { return c.Attribute == attribute && c.Strength == bawnwords.Partly }
		want := 0
		if slices.ContainsFunc(report.Capabilities, isMemory) {
			want = 1
		}
		for i, flag := range []string{"-q", "--json", "--pids=100", "--pids=100"} {
			times := 0
			if i == 2 {
				times = want
			}
			r := contenderNamed(t, "native").run("--memory", "512", flag)(t, f, "true")
			if got := strings.Count(r.Stderr, sentence); r.Code != 0 || got != times || times > 0 && !strings.Contains(r.Stderr, attribute) {
				t.Errorf("%s: exit code %d, said %d times, want %d: %q", flag, r.Code, got, times, r.Stderr)
			}
			if flag != "--json" {
				continue
			}
			if err := json.Unmarshal([]byte(r.Stderr), &report); err != nil || slices.ContainsFunc(report.InPart, isMemory) != (want == 1) {
				t.Errorf("--json: %v in %q; in part: want %v", err, r.Stderr, want == 1)
			}
		}
		t.Logf("in part: %d", want)
	})
}

// TestNativeKilledFromOutside is the other way to end a session as a whole: no
// limit is blamed for it, and Bawn says that it could not go on.
func TestNativeKilledFromOutside(t *testing.T) {
	testenv.Need(t, "userns", "landlock", "seccomp", "notify")
	f := sandboxtest.New(t, victim, sandboxtest.Self())
	mark := "left-" + f.Token
	cmd := f.Command(f.Install(t, bawn), "run", "--json", "--", f.Victim, "linger", mark)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		t.Fatalf("the guest says %q, %v", line, err)
	}
	for _, pid := range children(t, cmd.Process.Pid) {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	ended := regexp.MustCompile("sandbox was killed from outside|sandbox has ended") // the guest may have spoken before bawn knew of it
	time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
	_ = cmd.Wait()
	if e := summary(t, errs.String()); cmd.ProcessState.ExitCode() != 125 || e.Exit != 125 || len(e.Limits) != 0 || !ended.MatchString(e.Error.Message) {
		t.Errorf("exit code %d, %+v; want 125 and no limit", cmd.ProcessState.ExitCode(), e)
	}
}

// children lists the processes whose parent is pid.
func children(t *testing.T, pid int) (pids []int) {
	t.Helper()
	out, err := exec.Command("sh", "-c", `cat /proc/"$0"/task/*/children`, strconv.Itoa(pid)).Output()
	for _, word := range strings.Fields(string(out)) {
		pids = append(pids, number(word))
	}
	if err != nil || len(pids) == 0 {
		t.Fatalf("no child of %d: %v", pid, err)
	}
	return pids
}
