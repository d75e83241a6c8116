package cli

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/config"
)

// runFlags are the flags of bawn run.
type runFlags struct {
	config.Flags
	profile, provider, net, mode, agent, caches, memory, timeout, cwd string
	cpus                                                              float64
	pids                                                              int64
	plan, asJSON, quiet                                               bool
}

func (f *runFlags) declare(c *cobra.Command) {
	fl := c.Flags()
	fl.SetInterspersed(false)
	fl.StringVar(&f.profile, "profile", "", "named profile of the configuration (built in: default, readonly, online, strict)")
	fl.StringVar(&f.provider, "provider", "", "what enforces the isolation: native, or landlock where user namespaces are closed")
	fl.StringVar(&f.net, "net", "", "network: none or full")
	fl.StringArrayVar(&f.RW, "rw", nil, "`path` the guest may also write (repeatable)")
	fl.StringArrayVar(&f.RO, "ro", nil, "`path` the guest may only read (repeatable)")
	fl.StringArrayVar(&f.Deny, "deny", nil, "`path` the guest may not even read (repeatable)")
	fl.StringArrayVar(&f.Open, "open", nil, "credentials the guest may read: a `name` such as gh or aws, or a path (repeatable)")
	fl.StringArrayVar(&f.Env, "env", nil, "variable to pass through, `NAME`, PREFIX* or NAME=value (repeatable)")
	fl.StringArrayVar(&f.Devices, "device", nil, "device below /dev by `name` (repeatable)")
	fl.StringArrayVar(&f.Protected, "protect", nil, "further `name` that can't be written in the workspace (repeatable)")
	fl.StringVar(&f.caches, "caches", "", "package caches: private, read-only or shared")
	fl.StringVar(&f.cwd, "cwd", "", "directory to start in (default: the current one)")
	fl.StringVar(&f.memory, "memory", "", "limit of memory, for example 512m or 4g")
	fl.Int64Var(&f.pids, "pids", 0, "limit of processes and threads")
	fl.Float64Var(&f.cpus, "cpus", 0, "limit of processor cores, for example 1.5")
	fl.StringVar(&f.timeout, "timeout", "", "limit of time, for example 90s or 2h; ends with exit code 124")
	fl.StringVar(&f.mode, "mode", "", "mode: "+strings.Join(bawn.ModeNames(), ", "))
	fl.StringVar(&f.agent, "agent", "", "name of the agent in the audit log (default: the command's name)")
	fl.BoolVar(&f.plan, "plan", false, "print what would be enforced, as JSON, and run nothing")
	fl.BoolVar(&f.asJSON, "json", false, "print how it ended, whatever happens, as one last line of JSON on standard error")
	fl.BoolVarP(&f.quiet, "quiet", "q", false, "don't say what is enforced in part, nor list refusals")
}

// given points at the values of the flags that were given.
func (f *runFlags) given(c *cobra.Command, e *Env) error {
	texts := map[string]struct {
		to   **string
		from *string
	}{
		"profile": {&f.Profile, &f.profile}, "provider": {&f.Provider, &f.provider}, "net": {&f.Net, &f.net}, "mode": {&f.Mode, &f.mode},
		"agent": {&f.Agent, &f.agent}, "caches": {&f.Caches, &f.caches}, "timeout": {&f.Timeout, &f.timeout},
	}
	for name, t := range texts {
		if c.Flags().Changed(name) {
			*t.to = t.from
		}
	}
	if c.Flags().Changed("pids") {
		f.PIDs = &f.pids
	}
	if c.Flags().Changed("cpus") {
		f.CPUs = &f.cpus
	}
	if c.Flags().Changed("cwd") && f.cwd == "" {
		return usageError("name a directory that exists", "--cwd is empty; want a directory")
	}
	fromHere(e, f.RW)
	fromHere(e, f.RO)
	fromHere(e, f.Deny)
	if !c.Flags().Changed("memory") {
		return nil
	}
	mb, err := megabytes(f.memory)
	f.Memory = &mb
	return err
}

// fromHere makes the paths absolute: on a command line a relative one starts
// from the working directory, as everywhere.
func fromHere(e *Env, paths []string) {
	for i, p := range paths {
		if p != "" && p[0] != '~' {
			paths[i] = absolute(e, p)
		}
	}
}

// megabytes reads 512, 512m or 2g as MiB. What no program could start with was
// meant in another unit.
func megabytes(s string) (int64, error) {
	factor := int64(1)
	number := strings.TrimSuffix(strings.TrimSuffix(strings.ToLower(s), "b"), "i")
	switch {
	case strings.HasSuffix(number, "g"):
		factor, number = 1024, strings.TrimSuffix(number, "g")
	case strings.HasSuffix(number, "m"):
		number = strings.TrimSuffix(number, "m")
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n <= 0 || n > 1<<40 {
		return 0, usageError("for example: --memory 512m, --memory 4g", "--memory %q is no amount of memory; want MiB, or a number with m or g", s)
	}
	if n *= factor; n < config.MinMemoryMB {
		return 0, usageError(fmt.Sprintf("did you mean --memory %sg", number), "--memory %q is %d MiB; want %dm or more", s, n, config.MinMemoryMB)
	}
	return n, nil
}
