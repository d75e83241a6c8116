package policy

import (
	"slices"
	"strconv"
)

// gitPins are settings by which git runs no hook, file system monitor, pager or
// signature program that a repository names. They also make git ignore
// directories that only look like a bare repository, whose configuration
// anybody may have written (git-config(1), git(1)). Filters, textconv and
// external diffs of the repository's configuration can't be turned off by
// variables: an empty diff.external is run as well.
var gitPins = append(gitConfig(
	"core.hooksPath", "/dev/null",
	"core.fsmonitor", "false",
	"core.pager", "cat",
	"safe.bareRepository", "explicit",
	"gpg.program", "gpg",
	"gpg.x509.program", "gpgsm",
	"gpg.ssh.program", "ssh-keygen",
), "GIT_PAGER=cat", "GIT_OPTIONAL_LOCKS=0", "GIT_TERMINAL_PROMPT=0")

// GitPins returns them, as decisions about git have them in Env.
func GitPins() []string { return slices.Clone(gitPins) }

// gitConfig are the variables that set keys of git's configuration.
func gitConfig(pairs ...string) []string {
	out := []string{"GIT_CONFIG_COUNT=" + strconv.Itoa(len(pairs)/2)}
	for i := 0; i+1 < len(pairs); i += 2 {
		n := strconv.Itoa(i / 2)
		out = append(out, "GIT_CONFIG_KEY_"+n+"="+pairs[i], "GIT_CONFIG_VALUE_"+n+"="+pairs[i+1])
	}
	return out
}
