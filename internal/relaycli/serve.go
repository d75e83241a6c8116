package relaycli

import (
	"context"
	"net"
	"net/netip"
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
		return nil
	}
	name, _, err := hostname.NormalASCII(o.Name)
	if _, ip := netip.ParseAddr(strings.Trim(name, "[]")); err != nil || name != o.Name || ip == nil {
		return verb.Usage("for example: --name box.example.org", "--name %q is none that a passkey can be bound to; want the name of a host in lower case", o.Name)
	}
	return nil
}

func newServe(e *Env) *cobra.Command {
	var o Serving
	c := &cobra.Command{
		Use:   "serve",
		Short: "Run the relay: what guests ask, on your other screens",
		Long: `Run the relay, which carries what guests ask to you and your answers back. It
decides nothing and runs nothing. There is one a user; a session that has to ask
and has no terminal starts one by itself. What is pending outlives its end.`,
		Example: "  bawn serve\n  bawn serve --listen 127.0.0.1:7443                    # the page at https://localhost:7443\n" +
			"  bawn serve --listen 0.0.0.0:7443 --name box.example.org --tls-cert box.pem --tls-key box.key\n" +
			"  bawn serve --unit --listen 127.0.0.1:7443             # how the system runs it",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if e.Getenv("BAWN_SESSION") != "" {
				return errGuest
			}
			if err := o.check(); err != nil {
				return err
			}
			return e.Serve(contextOf(c), o)
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
	c.MarkFlagsMutuallyExclusive("unit", "on-demand")
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
