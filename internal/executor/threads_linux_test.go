package executor

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

// countThreads is set for the process in which TestThreadsAreThere counts.
const countThreads = "BAWN_TEST_COUNT_THREADS"

// TestThreadsAreThere: the spare threads have been made when keepThreads returns, since
// the next thing that happens may be a command that uses up all processes. They are
// counted in a process that has done nothing else.
func TestThreadsAreThere(t *testing.T) {
	if os.Getenv(countThreads) != "" {
		keepThreads()
		entries, err := os.ReadDir("/proc/self/task")
		if err != nil {
			t.Fatal(err)
		}
		fmt.Println("threads:", len(entries))
		return
	}
	for range 20 {
		cmd := exec.Command(os.Args[0], "-test.run=^TestThreadsAreThere$")
		cmd.Env = append(os.Environ(), countThreads+"=1")
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		_, text, _ := strings.Cut(string(out), "threads: ")
		text, _, _ = strings.Cut(text, "\n")
		if n, err := strconv.Atoi(text); err != nil || n < spareThreads+1 {
			t.Fatalf("%q threads, %v; want %d spare ones and the program's own", text, err, spareThreads)
		}
	}
}
