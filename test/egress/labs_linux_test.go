package egress_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/bawn-dev/bawn/internal/testenv/world"
)

// many is how many labs there are side by side: a test waits more than it works.
const many = 3

// labs runs each test in one of several labs, which have nothing in common: what a test
// looks for outside is from tests of its own lab, one after the other. Tests that were
// named share one lab.
func labs(m *testing.M) (int, error) {
	flag.Parse()
	named := func(name string) bool { return flag.Lookup(name).Value.String() != "" }
	if named("test.list") {
		return m.Run(), nil
	}
	if named("test.run") || named("test.bench") {
		return world.Enter("egress", os.Args[1:], os.Stdout, furnish)
	}
	names, err := allTests()
	if err != nil {
		return 1, err
	}
	var (
		all   sync.WaitGroup
		out   [many]bytes.Buffer
		codes [many]int
		errs  [many]error
	)
	for i := range many {
		all.Go(func() {
			args := append(os.Args[1:len(os.Args):len(os.Args)], "-test.run=^("+strings.Join(dealt(names, i), "|")+")$")
			codes[i], errs[i] = world.Enter("egress", args, &out[i], furnish)
		})
	}
	all.Wait()
	code := 0
	for i := range many {
		_, _ = out[i].WriteTo(os.Stdout)
		code = max(code, codes[i])
	}
	return code, errors.Join(errs[:]...)
}

// dealt are the tests of one lab. Those that follow each other in the source take
// about as long, so each goes to another lab.
func dealt(names []string, lab int) (list []string) {
	for i := lab; i < len(names); i += many {
		list = append(list, names[i])
	}
	return list
}

// allTests are the names of this package's tests.
func allTests() ([]string, error) {
	text, err := exec.Command("/proc/self/exe", "-test.list=^Test").Output()
	if err != nil {
		return nil, fmt.Errorf("list the tests: %w", err)
	}
	return strings.Fields(string(text)), nil
}
