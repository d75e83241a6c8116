package relaycli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"text/tabwriter"
	"time"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"
	"golang.org/x/term"
	"rsc.io/qr"

	"github.com/bawn-dev/bawn/internal/redact"
	"github.com/bawn-dev/bawn/internal/verb"
	bawnv1 "github.com/bawn-dev/bawn/proto/bawn/v1"
)

// pairing is what bawn pair was told.
type pairing struct {
	readOnly, list, asJSON bool
	revoke                 string
}

func newPair(e *Env) *cobra.Command {
	var p pairing
	c := &cobra.Command{
		Use:   "pair",
		Short: "Let a browser or phone of yours answer, over the web page",
		Long: `Print a code with which one new device can be paired with the web page, within
ten minutes and once: scan it, or open the address and type the short code. The
device makes a passkey; later it logs in with that. The web page is there when
the relay runs with --listen: see "bawn serve --help".`,
		Example: "  bawn pair\n  bawn pair --read-only      # it may look, and answer nothing\n  bawn pair --list\n  bawn pair --revoke 3f2a",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if e.Getenv("BAWN_SESSION") != "" {
				return errGuest
			}
			return p.run(contextOf(c), e)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	f := c.Flags()
	f.BoolVar(&p.readOnly, "read-only", false, "the device may look, and answer nothing")
	f.BoolVar(&p.list, "list", false, "show the paired devices")
	f.StringVar(&p.revoke, "revoke", "", "take the device with this `id` out at once; its beginning is enough")
	f.BoolVar(&p.asJSON, "json", false, "write JSON")
	_ = c.RegisterFlagCompletionFunc("revoke", func(c *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		return e.deviceIDs(contextOf(c)), cobra.ShellCompDirectiveNoFileComp
	})
	c.MarkFlagsMutuallyExclusive("read-only", "list", "revoke")
	return c
}

func (p pairing) run(ctx context.Context, e *Env) error {
	devices, err := e.Devices(ctx)
	if err != nil {
		return err
	}
	switch {
	case p.list:
		m, err := devices.List(ctx, &bawnv1.DeviceServiceListRequest{})
		if err != nil {
			return unreached(err)
		}
		return p.show(e, m.GetDevices())
	case p.revoke != "":
		return p.takeOut(ctx, e)
	}
	m, err := devices.Pair(ctx, &bawnv1.DeviceServicePairRequest{ReadOnly: p.readOnly})
	if err != nil {
		return unreached(err)
	}
	if p.asJSON {
		return e.writeJSON(struct {
			URL         string    `json:"url"`
			Code        string    `json:"code"`
			Expires     time.Time `json:"expires"`
			Fingerprint string    `json:"fingerprint,omitempty"`
		}{m.GetUrl(), m.GetCode(), m.GetExpires().AsTime(), m.GetFingerprint()})
	}
	return p.print(e, m)
}

// deviceIDs completes IDs with the devices' names.
func (e *Env) deviceIDs(ctx context.Context) (out []string) {
	devices, err := e.Devices(ctx)
	if err != nil {
		return nil
	}
	m, _ := devices.List(ctx, &bawnv1.DeviceServiceListRequest{}) // there is nothing to complete then
	for _, d := range m.GetDevices() {
		out = append(out, d.GetId()[:min(len(d.GetId()), 8)]+"\t"+redact.Visible(d.GetName()))
	}
	return out
}

// unreached says what to do where the relay or its web page is not there.
func unreached(err error) error {
	switch connect.CodeOf(err) {
	case connect.CodeUnavailable:
		return &verb.Error{Code: verb.ExitUsage, Err: errors.New("no relay runs"), Hint: "start one with a web page: bawn serve --listen 127.0.0.1:7443"}
	case connect.CodeFailedPrecondition:
		return &verb.Error{Code: verb.ExitUsage, Err: errors.New("the relay that runs serves no web page"), Hint: "end it, and start one that does: bawn serve --listen 127.0.0.1:7443"}
	case connect.CodePermissionDenied:
		return errGuest
	}
	return err
}

// print shows a code to a human.
func (p pairing) print(e *Env, m *bawnv1.DeviceServicePairResponse) error {
	address, _, _ := strings.Cut(m.GetUrl(), "#")
	if m.GetFingerprint() != "" {
		if err := p.printTrust(e, address, m.GetFingerprint()); err != nil {
			return err
		}
	}
	if err := p.draw(e, m.GetUrl()); err != nil {
		return err
	}
	what := "the device may answer and reach into terminals"
	if p.readOnly {
		what = "the device may only look"
	}
	scan := "Scan this, or open"
	if here(m.GetUrl()) {
		scan = "Open, in a browser on this machine (a phone needs a page by name: see \"bawn serve --help\"),"
	}
	fmt.Fprintf(e.Stdout, "%s\n\n  %s\n\nor open %s and type the code\n\n  %s\n\nIt is good once, for %.0f minutes; %s.\n",
		scan, m.GetUrl(), address, m.GetCode(), m.GetExpires().AsTime().Sub(e.Now()).Minutes(), what)
	return nil
}

// printTrust shows where the device gets the authority that it has to trust before
// its browser makes a passkey.
func (p pairing) printTrust(e *Env, address, fingerprint string) error {
	ca := address + "bawn-ca.crt"
	fmt.Fprintf(e.Stdout, "First the device has to trust the page's authority, which is Bawn's own (docs/relay.md).\nOpen, past the browser's warning,\n\n  %s\n\nand compare the SHA-256 before you install it:\n\n  %s\n\n", ca, fingerprint)
	if err := p.draw(e, ca); err != nil {
		return err
	}
	_, err := fmt.Fprint(e.Stdout, "Then pair it.\n\n")
	return err
}

// draw draws an address as a QR code where a person looks on, and where a device with a
// camera reaches it.
func (p pairing) draw(e *Env, address string) error {
	if !term.IsTerminal(int(e.Stdout.Fd())) || here(address) {
		return nil
	}
	return drawQR(e.Stdout, address)
}

// here reports whether an address means whichever machine opens it.
func here(address string) bool {
	u, err := url.Parse(address)
	return err == nil && u.Hostname() == "localhost"
}

// quiet is the margin of a QR code, in modules.
const quiet = 2

// drawQR draws text as a QR code, two modules in a character: white blocks on
// black, whatever the terminal's colours are.
func drawQR(w io.Writer, text string) error {
	code, err := qr.Encode(text, qr.M)
	if err != nil {
		return fmt.Errorf("draw the code: %w", err)
	}
	light := func(x, y int) bool { return !code.Black(x, y) }
	var b strings.Builder
	for y := -quiet; y < code.Size+quiet; y += 2 {
		b.WriteString("\x1b[97;40m")
		for x := -quiet; x < code.Size+quiet; x++ {
			switch up, down := light(x, y), y+1 < code.Size+quiet && light(x, y+1); {
			case up && down:
				b.WriteString("█")
			case up:
				b.WriteString("▀")
			case down:
				b.WriteString("▄")
			default:
				b.WriteString(" ")
			}
		}
		b.WriteString("\x1b[0m\n")
	}
	_, err = io.WriteString(w, b.String()+"\n")
	return err
}

// A deviceLine is a device as JSON.
type deviceLine struct {
	ID       string    `json:"id"`
	Name     string    `json:"name"`
	ReadOnly bool      `json:"readOnly"`
	Push     bool      `json:"push"`
	Paired   time.Time `json:"paired"`
	Seen     time.Time `json:"seen"`
}

func (p pairing) show(e *Env, devices []*bawnv1.Device) error {
	lines := []deviceLine{}
	for _, d := range devices {
		lines = append(lines, deviceLine{d.GetId(), d.GetName(), d.GetReadOnly(), d.GetPush(), d.GetPaired().AsTime(), d.GetSeen().AsTime()})
	}
	if p.asJSON {
		return e.writeJSON(lines)
	}
	if len(lines) == 0 {
		_, err := fmt.Fprintln(e.Stderr, "bawn: note: no device is paired; \"bawn pair\" makes a code")
		return err
	}
	w := tabwriter.NewWriter(e.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "DEVICE\tNAME\tMAY\tPAIRED\tSEEN")
	for _, l := range lines {
		may := "answer"
		if l.ReadOnly {
			may = "look"
		}
		fmt.Fprintf(w, "%.8s\t%s\t%s\t%s\t%s\n", l.ID, l.Name, may, l.Paired.Local().Format(time.DateTime), l.Seen.Local().Format(time.DateTime))
	}
	return w.Flush()
}

// takeOut revokes the one device whose ID begins so.
func (p pairing) takeOut(ctx context.Context, e *Env) error {
	devices, err := e.Devices(ctx)
	if err != nil {
		return err
	}
	m, err := devices.List(ctx, &bawnv1.DeviceServiceListRequest{})
	if err != nil {
		return unreached(err)
	}
	var found []*bawnv1.Device
	for _, d := range m.GetDevices() {
		if strings.HasPrefix(d.GetId(), strings.ToLower(p.revoke)) {
			found = append(found, d)
		}
	}
	if len(found) != 1 {
		return verb.Usage("\"bawn pair --list\" shows all", "%d devices begin with %q; want one", len(found), p.revoke)
	}
	if _, err := devices.Revoke(ctx, &bawnv1.DeviceServiceRevokeRequest{Id: found[0].GetId()}); err != nil {
		return unreached(err)
	}
	_, err = fmt.Fprintf(e.Stdout, "%s is out: its passkey, logins and notices are gone\n", found[0].GetName())
	return err
}
