package reference

import (
	"fmt"
	"strings"

	"github.com/bawn-dev/bawn/internal/config"
	"github.com/bawn-dev/bawn/internal/verb"
)

// configuration is the page of the configuration's keys.
func configuration() string {
	var b strings.Builder
	b.WriteString("# Configuration keys\n\n" +
		"Files, layers and profiles are told in [Configuration](../configuration.md). The third column says what the file of a\n" +
		"project that you have not trusted may do with a key. \"In profiles\" marks keys that may stand in `[profiles.NAME]`, too.\n\n" +
		"| key | value | an untrusted project | in profiles | meaning |\n|---|---|---|---|---|\n")
	for _, k := range config.Keys() {
		in := ""
		if k.InProfiles {
			in = "yes"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", k.Path, cell(k.Value), k.Project, in, cell(k.Doc))
	}
	return b.String()
}

// exitCodes is the page of the exit codes.
func exitCodes() string {
	var b strings.Builder
	b.WriteString("# Exit codes\n\n| code | meaning |\n|---|---|\n")
	for _, c := range verb.ExitCodes() {
		fmt.Fprintf(&b, "| %s | %s |\n", c.Code, cell(c.Meaning))
	}
	return b.String()
}
