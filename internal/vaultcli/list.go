package vaultcli

import (
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/secrets"
	"github.com/bawn-dev/bawn/internal/verb"
)

func newList(o *common) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "Show what there is and where it is bound, without values",
		Long:    "Shows names, stores, bindings and times. It opens no store and asks for nothing.",
		Example: "  bawn secret list\n  bawn secret list --json",
		Args:    noArgs,
		RunE: func(*cobra.Command, []string) error {
			return o.with(func(v *secrets.Vault) error {
				list, err := v.List()
				if err != nil {
					return err
				}
				if asJSON {
					return o.writeJSON(map[string]any{"secrets": rows(list)})
				}
				return o.writeTable(list)
			})
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	return c
}

// A row is an entry as JSON has it, a boundTo one of its bindings.
type row struct {
	Name     string    `json:"name"`
	Store    string    `json:"store"`
	Created  time.Time `json:"created"`
	Changed  time.Time `json:"changed"`
	Used     time.Time `json:"used,omitzero"`
	Bindings []boundTo `json:"bindings"`
}

type boundTo struct {
	Host   string     `json:"host"`
	Place  bawn.Place `json:"place"`
	Name   string     `json:"name,omitempty"`
	File   string     `json:"file,omitempty"`
	Format string     `json:"format,omitempty"`
	Env    string     `json:"env,omitempty"`
}

func rows(list []secrets.Entry) []row {
	out := []row{}
	for _, e := range list {
		r := row{e.Name, e.Store, e.Created, e.Changed, e.Used, []boundTo{}}
		for _, b := range e.Bindings {
			r.Bindings = append(r.Bindings, boundTo{b.Host, b.Place, b.Name, b.File, b.Format, b.Env})
		}
		out = append(out, r)
	}
	return out
}

func (o *common) writeJSON(v any) error {
	return verb.WriteJSON(o.env.Stdout, v)
}

func (o *common) writeTable(list []secrets.Entry) error {
	if len(list) == 0 {
		fmt.Fprintln(o.env.Stderr, "bawn: note: there are no secrets yet; make one with: bawn secret set NAME")
		return nil
	}
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NAME\tSTORE\tCREATED\tLAST USED\tBOUND TO")
	for _, e := range list {
		first := fmt.Sprintf("%s\t%s\t%s\t%s\t", e.Name, e.Store, day(e.Created), day(e.Used))
		if len(e.Bindings) == 0 {
			fmt.Fprintln(w, first+"nothing: no session can use it")
		}
		for _, b := range e.Bindings {
			fmt.Fprintln(w, first+Describe(b))
			first = "\t\t\t\t"
		}
	}
	w.Flush()
	head, rest, _ := strings.Cut(text.String(), "\n")
	if o.colour() {
		head = "\x1b[1m" + head + "\x1b[0m"
	}
	_, err := fmt.Fprintf(o.env.Stdout, "%s\n%s", head, rest)
	return err
}

func (o *common) colour() bool {
	return o.env.Getenv("NO_COLOR") == "" && o.env.Getenv("TERM") != "dumb" && term.IsTerminal(int(o.env.Stdout.Fd()))
}

func day(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Local().Format("2006-01-02 15:04")
}

// Describe says a binding in words: "api.example.com, header x-api-key, in $KEY".
func Describe(b bawn.Binding) string {
	s := b.Host + ", " + b.Place.String()
	if b.Name != "" {
		s += " " + b.Name
	}
	if b.File != "" {
		s += ", in " + b.File + " (" + b.Format + ")"
	}
	if b.Env != "" {
		s += ", in $" + b.Env
	}
	return s
}
