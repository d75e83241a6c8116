// Command victim is what the conformance suite runs inside a sandbox. Each of
// its checks performs one operation that the sandbox promises to refuse and
// prints what came of it as a line of JSON. It is static and needs no other
// program.
//
//	victim list                              what there is, one JSON object a line
//	victim -world JSON NAME                  one check
//	victim -world JSON all [--families a,b] [--except NAME,…]
//	victim serve                             checks that share a process, as they are asked for
//	victim -world JSON posture               everything observable of itself
//	victim idle MARK | orphan MARK | hog …   actors, see actors_linux.go
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "victim: %v\n", err)
		os.Exit(2)
	}
}

func run(args []string) error {
	world := new(Fixtures)
	if len(args) > 1 && args[0] == "-world" {
		if err := json.Unmarshal([]byte(args[1]), world); err != nil {
			return fmt.Errorf("world: %w", err)
		}
		args = args[2:]
	}
	if len(args) == 0 {
		return errors.New("want list, all, posture or the name of a check")
	}
	if os.Getuid() != os.Geteuid() && args[0] != "whoami" {
		return errors.New("with another's rights only whoami is done")
	}
	if act, ok := actors()[args[0]]; ok {
		return act(args[1:])
	}
	switch args[0] {
	case "list":
		return list()
	case "posture":
		return print(collectPosture(world))
	case "all":
		return runAll(world, args[1:])
	case "-child":
		return runChild(world, args[1])
	case "-children":
		return runChildren(world, args[1:])
	case "serve": // below one like it, as checks look at their parent, too
		cmd := exec.Command(self, "-serve")
		cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
		return cmd.Run()
	case "-serve":
		return serveChecks(os.Stdin)
	}
	c, ok := find(args[0])
	if !ok {
		return fmt.Errorf("unknown check %q; see victim list", args[0])
	}
	return print(drive(world, c))
}

func print(v any) error { return json.NewEncoder(os.Stdout).Encode(v) }

func list() error {
	for _, c := range checks() {
		if err := print(c.info()); err != nil {
			return err
		}
	}
	return nil
}

func find(name string) (Check, bool) {
	all := checks()
	i := slices.IndexFunc(all, func(c Check) bool { return c.Name == name })
	if i < 0 {
		return Check{}, false
	}
	return all[i], true
}

// runAll drives every check of the world's state, of all families or of those
// that --families names, but for those that --except names.
func runAll(world *Fixtures, args []string) error {
	var families, except []string
	for ; len(args) > 1; args = args[2:] {
		switch args[0] {
		case "--families":
			families = strings.Split(args[1], ",")
		case "--except":
			except = strings.Split(args[1], ",")
		}
	}
	if len(args) > 0 {
		return fmt.Errorf("unknown arguments %q; want --families A,B or --except NAME,NAME", args)
	}
	list := slices.DeleteFunc(checks(), func(c Check) bool {
		return c.state() != world.State || families != nil && !slices.Contains(families, c.Family) || slices.Contains(except, c.Name)
	})
	return runTogether(world, list)
}

// runChild does what the re-executed process is for.
func runChild(world *Fixtures, name string) error {
	c, ok := find(name)
	if !ok {
		return fmt.Errorf("unknown check %q", name)
	}
	scratch = scratchDir(world)
	err := c.Do(*world)
	if err != nil {
		undo()
	}
	return print(c.judge(err))
}

// checks is the whole table.
func checks() []Check {
	return slices.Concat(
		writeChecks(), narrowChecks(), spelledWrites(), systemWrites(), ownWrites(), readChecks(), spelledReads(), deviceReads(), credentialChecks(),
		presentChecks(), absentChecks(), spelledProtected(), gitChecks(), raceChecks(), linkChecks(),
		processChecks(), signalChecks(), procEntryChecks(), startedChecks(), terminalChecks(),
		unixChecks(), sysvChecks(), posixChecks(), keyChecks(),
		namespaceChecks(), mountChecks(), mountAPIChecks(), identityChecks(), setIDChecks(), callChecks(), abiChecks(), kernelFileChecks(),
		networkChecks(), familyChecks(), descriptorChecks(), limitChecks(),
	)
}
