package egressd

import (
	"os"
	"os/exec"
	"runtime"
	"testing"
)

// hoards has the test's own program hold a GiB, of which it writes nothing: "bounded" or
// "free".
const hoards = "BAWN_TEST_HOARDS"

// TestMemoryIsBounded: whatever a guest makes the process hold, it is not more.
func TestMemoryIsBounded(t *testing.T) {
	if how := os.Getenv(hoards); how != "" {
		hoard(how == "bounded")
		return
	}
	for how, ends := range map[string]bool{"bounded": true, "free": false} {
		c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestMemoryIsBounded$")
		c.Env = append(os.Environ(), hoards+"="+how)
		out, err := c.CombinedOutput()
		if (err != nil) != ends {
			t.Errorf("%s: %v, %.300s", how, err, out)
		}
	}
}

func hoard(bounded bool) {
	if bounded {
		if err := boundMemory(256 << 20); err != nil {
			panic(err)
		}
	}
	var all [][]byte
	for range 64 {
		all = append(all, make([]byte, 16<<20))
	}
	runtime.KeepAlive(all)
}

var held []byte

// TestReleaseMemory collects what is large.
func TestReleaseMemory(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	held = make([]byte, worth)
	held = nil
	releaseMemory()
	if runtime.ReadMemStats(&after); after.NumGC == before.NumGC {
		t.Error("nothing has been collected")
	}
}
