package relaycli

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bawn-dev/bawn/internal/hostname"
	"github.com/bawn-dev/bawn/internal/verb"
)

// Serving is what bawn serve was told.
type Serving struct {
	OnDemand bool   // end when there has been nothing to do for a while
	Listen   string // address of the web page, "" for none
	Name     string // of the host in the page's address
	Cert     string // PEM file, "" for a certificate of Bawn's own
	Key      string // PEM file
	Detach   bool   // serve in the background
	Stop     bool   // end the relay that runs, in place of starting one
	Status   bool   // describe the relay that runs, in place of starting one
	JSON     bool   // of the status
	Log      bool   // write what is logged to the file that relays in the background have, not to stderr
	Ready    func() // called when all is served, or nil
	// Unit says to write the files by which the system starts the relay, in place
	// of starting it.
	Unit bool
}

// Words are the command line that serves so, from wherever it is started.
func (o *Serving) Words() ([]string, error) {
	words := []string{"serve"}
	for _, f := range []struct {
		flag, value string
		file        bool
	}{{"--listen", o.Listen, false}, {"--name", o.Name, false}, {"--tls-cert", o.Cert, true}, {"--tls-key", o.Key, true}} {
		if f.value == "" {
			continue
		}
		if f.file {
			full, err := filepath.Abs(f.value)
			if err != nil {
				return nil, err
			}
			f.value = full
		}
		words = append(words, f.flag, f.value)
	}
	return words, nil
}

// check refuses an address and a name that no page can have, before anything
// serves.
func (o *Serving) check() error {
	if o.Listen != "" {
		const example = "for example: bawn serve --listen 127.0.0.1:7443"
		host, port, err := net.SplitHostPort(o.Listen)
		if err != nil {
			return verb.Usage(example, "--listen %q: want ADDRESS:PORT", o.Listen)
		}
		if _, err := netip.ParseAddr(host); err != nil {
			return verb.Usage(example, "--listen %q: want an IP address, 0.0.0.0 or [::] for all", o.Listen)
		}
		if _, err := net.LookupPort("tcp", port); err != nil {
			return verb.Usage(example, "--listen %q: %q is no port", o.Listen, port)
		}
	}
	if o.Name == "" {
		return o.checkNameless()
	}
	name, _, err := hostname.NormalASCII(o.Name)
	if _, ip := netip.ParseAddr(strings.Trim(name, "[]")); err != nil || name != o.Name || ip == nil {
		return verb.Usage("for example: --name box.example.org", "--name %q can't have a passkey bound to it; want the name of a host in lower case", o.Name)
	}
	return nil
}

// checkNameless refuses a page that other machines can reach but under no name
// of theirs: passkeys are bound to the name in its address.
func (o *Serving) checkNameless() error {
	if o.Listen == "" {
		return nil
	}
	if at, err := netip.ParseAddrPort(o.Listen); err == nil && at.Addr().IsLoopback() {
		return nil
	}
	machine, err := os.Hostname()
	if err != nil {
		machine = "box"
	}
	machine, _, _ = strings.Cut(strings.ToLower(machine), ".")
	return verb.Usage(fmt.Sprintf("for example: --name %s.local in a network with mDNS; docs/relay.md has a recipe for it and for a tailnet", machine),
		"--listen %q: other devices reach the page by a name, and --name is missing", o.Listen)
}

func newServe(e *Env) *cobra.Command {
	var o Serving
	c := &cobra.Command{
		Use:   "serve",
		Short: "Run the relay: what guests ask, on your other screens",
		Long: `Run the relay, which carries what guests ask to you and your answers back. It
decides nothing and runs nothing. There is one a user: this one takes over from
the one that runs. A session that has to ask and has no terminal starts one by
itself, but not after "bawn serve --stop". Pending questions survive its end.`,
		Example: "  bawn serve -d --listen 127.0.0.1:7443                 # the page at https://localhost:7443\n" +
			"  bawn serve -d --listen 0.0.0.0:7443 --name box.local  # and for your phone\n" +
			"  bawn serve --status\n  bawn serve --stop                                     # no relay runs until you start one\n" +
			"  bawn serve --unit --listen 127.0.0.1:7443             # how the system runs it",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if e.Getenv("BAWN_SESSION") != "" {
				return errGuest
			}
			if err := o.check(); err != nil {
				return err
			}
			return e.serve(contextOf(c), o)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	f := c.Flags()
	f.BoolVar(&o.OnDemand, "on-demand", false, "end when there has been nothing to do for a while")
	f.StringVar(&o.Listen, "listen", "", "serve the web page at this `address` and port as well, over HTTPS")
	f.StringVar(&o.Name, "name", "", "`host` name in the page's address; passkeys are bound to it (default: localhost)")
	f.StringVar(&o.Cert, "tls-cert", "", "PEM `file` of the page's certificate (default: one of an authority of Bawn's own)")
	f.StringVar(&o.Key, "tls-key", "", "PEM `file` of its key")
	f.BoolVar(&o.Unit, "unit", false, "print the files by which systemd or launchd runs the relay with these flags, and where they belong")
	f.BoolVarP(&o.Detach, "detach", "d", false, "serve in the background")
	f.BoolVar(&o.Stop, "stop", false, "end the relay; sessions start none until you do")
	f.BoolVar(&o.Status, "status", false, "say whether a relay runs, and how")
	f.BoolVar(&o.JSON, "json", false, "write the status as JSON")
	c.MarkFlagsMutuallyExclusive("unit", "on-demand", "detach", "stop", "status")
	for _, other := range []string{"stop", "status"} {
		c.MarkFlagsMutuallyExclusive("listen", other)
	}
	c.MarkFlagsRequiredTogether("tls-cert", "tls-key")
	return c
}

// contextOf is the command's context, which cobra leaves nil where Execute was
// given none.
func contextOf(c *cobra.Command) context.Context {
	if ctx := c.Context(); ctx != nil {
		return ctx
	}
	return context.Background()
}
