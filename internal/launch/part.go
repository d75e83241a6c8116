package launch

import (
	"os"

	"github.com/bawn-dev/bawn/internal/dockerapi/writeback"
	"github.com/bawn-dev/bawn/internal/executor"
	"github.com/bawn-dev/bawn/internal/runner"
	"github.com/bawn-dev/bawn/internal/sandbox/gvisor"
	within "github.com/bawn-dev/bawn/internal/sandbox/inside"
	"github.com/bawn-dev/bawn/internal/shim"
)

// AsPart runs a part inside of a sandbox, if this program was started as one: a shell,
// the starter of an agent's commands, the executor, what writes for containers, or the
// sandbox's first process or its maker. It returns nil and the exit code then, and the words of an ordinary call
// elsewhere.
func AsPart(argv []string) (args []string, code int) {
	if call := runner.ShellCall(argv); call != nil {
		return shim.Shell(call, os.Environ())
	}
	if line, ok := shim.PrefixCall(argv); ok {
		return nil, shim.Prefix(line, os.Environ())
	}
	switch {
	case len(argv) == 2 && argv[1] == runner.ExecutorArgument:
		return nil, executor.Main(os.Stdin)
	case len(argv) > 1 && argv[1] == within.Argument:
		return nil, within.Main(argv[2:], os.Stdin)
	case len(argv) == 3 && argv[1] == writeback.Argument:
		return nil, writeback.Main(argv[2], os.Stdin, os.Stdout)
	case len(argv) == 2 && argv[1] == gvisor.Argument:
		return nil, gvisor.Main(os.Stdin)
	case len(argv) == 0:
		return []string{}, 0
	}
	return argv[1:], 0
}
