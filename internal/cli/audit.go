package cli

import (
	"bufio"
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/audit"
	"github.com/bawn-dev/bawn/internal/launch"
	"github.com/bawn-dev/bawn/internal/settings"
	"github.com/bawn-dev/bawn/internal/verb"
)

func newAuditCommand(e *launch.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "Read and verify the log of what agents asked for and did",
		Long: "Every session and decision is a record of the audit log in bawn's state directory.\n" +
			"The records are chained by hash, so that a change to any of them shows.\n\n" +
			"The log only grows: up to 1 GiB for what a session asks, as much for its network, and 1 GiB a\n" +
			"day for hooks outside of sessions. To begin a new one, move the directory away.",
		Example: "  bawn audit query --since 2h --verdict deny\n" +
			"  bawn audit tail\n" +
			"  bawn audit verify",
		Args: verb.OnlyCommands,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	cmd.AddCommand(newAuditQuery(e), newAuditTail(e), newAuditVerify(e), newAuditExport(e))
	return cmd
}

func newAuditQuery(e *launch.Env) *cobra.Command {
	var flags auditFlags
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "query",
		Short: "Show records, the newest last",
		Long: "Show records as a table. On a terminal IDs are shortened (--session takes short ones), and long texts\n" +
			"are cut to its width, with the number of characters left out. In a pipe or file, and with --json, nothing is cut.",
		Example: "  bawn audit query --session 5f2c --kind network\n" +
			"  bawn audit query --resource '*.ssh*' --verdict deny --limit 0\n" +
			"  bawn audit query --since 2026-09-01T08:00:00Z --json | jq .event.resource",
		Args: verb.NoArgs,
		RunE: func(*cobra.Command, []string) error { return auditQuery(e, flags, asJSON) },
	}
	flags.add(cmd, e, 100)
	cmd.Flags().BoolVar(&flags.reverse, "reverse", false, "show the newest first")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the log's lines, one JSON object each")
	return cmd
}

func newAuditTail(e *launch.Env) *cobra.Command {
	var flags auditFlags
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "tail",
		Short: "Show records as they are written",
		Example: "  bawn audit tail --verdict deny\n" +
			"  bawn audit tail --since 10m --json",
		Args: verb.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, f, err := flags.resolve(e)
			if err != nil {
				return err
			}
			return printEntries(e, audit.Tail(cmd.Context(), dir, f), newPrinter(e, asJSON, 1))
		},
	}
	flags.add(cmd, e, 0)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the log's lines, one JSON object each")
	return cmd
}

func newAuditVerify(e *launch.Env) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Check that no record was changed, removed or added",
		Long: "Checks every record's hash and place in the chain, and the end of the log against\n" +
			"the head file. Exits with 0 for a log in order, with 1 for any other.",
		Example: "  bawn audit verify\n  bawn audit verify --json",
		Args:    verb.NoArgs,
		RunE:    func(*cobra.Command, []string) error { return auditVerify(e, asJSON) },
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the report as one JSON object")
	return cmd
}

func newAuditExport(e *launch.Env) *cobra.Command {
	var flags auditFlags
	var asJSON, asCSV bool
	cmd := &cobra.Command{
		Use:   "export",
		Short: "Write records for other programs",
		Example: "  bawn audit export --json > audit.jsonl\n" +
			"  bawn audit export --csv --since 2026-09-01T00:00:00Z > september.csv",
		Args: verb.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			dir, f, err := flags.resolve(e)
			if err != nil {
				return err
			}
			var p printer = &jsonPrinter{w: bufio.NewWriter(e.Stdout)}
			if asCSV {
				p = &csvPrinter{w: csv.NewWriter(e.Stdout)}
			}
			return printEntries(e, audit.Query(dir, f), p)
		},
	}
	flags.add(cmd, e, 0)
	cmd.Flags().BoolVar(&asJSON, "json", false, "JSON lines, as in the log (the default)")
	cmd.Flags().BoolVar(&asCSV, "csv", false, "comma-separated values (RFC 4180) with a header")
	cmd.MarkFlagsMutuallyExclusive("json", "csv")
	return cmd
}

// auditFlags are the filters of query, tail and export.
type auditFlags struct {
	filter                audit.Filter
	verdict, since, until string
	reverse               bool
}

func (a *auditFlags) add(cmd *cobra.Command, e *launch.Env, limit int) {
	f := cmd.Flags()
	f.StringVar(&a.filter.Session, "session", "", "only this session; the beginning of its id is enough")
	f.StringVar(&a.filter.Agent, "agent", "", "only this agent")
	f.StringVar(&a.verdict, "verdict", "", "only what was allowed or denied: allow, ask or deny")
	f.StringVar(&a.filter.Resource, "resource", "", "only resources with this text, or matching a pattern with * and ?")
	f.StringVar(&a.filter.Kind, "kind", "", "only this kind: "+strings.Join(eventKinds, ", "))
	f.StringVar(&a.since, "since", "", "not before this time, such as 2026-09-01T08:00:00Z, or this long ago, such as 2h or 7d")
	f.StringVar(&a.until, "until", "", "before this time, as with --since")
	f.IntVar(&a.filter.Limit, "limit", limit, "as many records at most; 0 for all")
	completeAudit(cmd, e)
}

// eventKinds are the kinds of events.
var eventKinds = []string{"filesystem", "network", "command", "tool", "session", "approval", "relay", "audit"}

// resolve returns the log's directory and the filter that the flags mean.
func (a *auditFlags) resolve(e *launch.Env) (string, audit.Filter, error) {
	f, now := a.filter, time.Now()
	if f.Limit < 0 {
		return "", f, verb.Usage("use 0 for all", "--limit is %d; want 0 or more", f.Limit)
	}
	if f.Kind != "" && !slices.Contains(eventKinds, f.Kind) {
		return "", f, verb.Usage("use --kind network, for example", "--kind is %q; want one of %q", f.Kind, eventKinds)
	}
	if a.verdict != "" {
		f.Verdict = new(bawn.Verdict)
		if err := f.Verdict.UnmarshalText([]byte(a.verdict)); err != nil {
			return "", f, verb.Usage("use --verdict deny, for example", "--verdict: %w", err)
		}
	}
	var err error
	if f.Since, err = parseWhen("--since", a.since, now); err != nil {
		return "", f, err
	}
	if f.Until, err = parseWhen("--until", a.until, now); err != nil {
		return "", f, err
	}
	dir, err := settings.AuditDir(&e.World)
	if err == nil {
		f.Session, err = wholeSession(e, dir, f.Session)
	}
	return dir, f, err
}

// parseWhen reads an RFC 3339 time, or a duration before now: Go's syntax and
// whole days such as 7d. The empty text is the zero time.
func parseWhen(flag, text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t, nil
	}
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.ParseUint(days, 10, 16); err == nil {
			return now.AddDate(0, 0, -int(n)), nil
		}
	}
	if d, err := time.ParseDuration(text); err == nil && d >= 0 {
		return now.Add(-d), nil
	}
	return time.Time{}, verb.Usage("use "+flag+" 2h, for example", "%s is %q; want a duration such as 2h or 7d, or a time such as 2026-09-01T08:00:00Z", flag, text)
}

// auditQuery shows the newest records; where there are more than the limit it
// says so.
func auditQuery(e *launch.Env, flags auditFlags, asJSON bool) error {
	dir, f, err := flags.resolve(e)
	if err != nil {
		return err
	}
	p := newPrinter(e, asJSON, 200)
	defer func() {
		if table, ok := p.(*tablePrinter); ok && !table.header {
			fmt.Fprintln(e.Stderr, "bawn: note: there is no such record")
		}
	}()
	if f.Limit == 0 {
		f.NewestFirst = flags.reverse
		return printEntries(e, audit.Query(dir, f), p)
	}
	limit := f.Limit
	f.NewestFirst = true
	f.Limit++ // one more, to see whether there are more
	var found []audit.Entry
	var errs []error
	for entry, err := range audit.Query(dir, f) {
		if err != nil {
			errs = append(errs, err)
			continue
		}
		found = append(found, entry)
	}
	if len(found) > limit {
		found = found[:limit]
		fmt.Fprintf(e.Stderr, "bawn: note: these are the newest %d; use --limit 0 to see all\n", limit)
	}
	if !flags.reverse {
		slices.Reverse(found)
	}
	return printEntries(e, func(yield func(audit.Entry, error) bool) {
		for _, entry := range found {
			if !yield(entry, nil) {
				return
			}
		}
		for _, err := range errs {
			if !yield(audit.Entry{}, err) {
				return
			}
		}
	}, p)
}

func auditVerify(e *launch.Env, asJSON bool) error {
	dir, err := settings.AuditDir(&e.World)
	if err != nil {
		return err
	}
	r, err := audit.Verify(dir)
	if err != nil {
		return &verb.Error{Code: verb.ExitInternal, Err: fmt.Errorf("audit log can't be read: %w", err), Hint: ""}
	}
	if asJSON {
		err = verb.JSONLines(e.Stdout).Encode(r)
	} else {
		_, err = io.WriteString(e.Stdout, describeReport(r))
	}
	if err == nil && r.Fault != nil {
		return verb.Status(1)
	}
	return err
}

func describeReport(r audit.Report) string {
	var b strings.Builder
	switch {
	case r.Fault != nil:
		f := r.Fault
		fmt.Fprintf(&b, "audit log is damaged: line %d: %s\n  got  %s\n  want %s\n", f.Line, f.Kind, f.Got, f.Want)
		fmt.Fprintf(&b, "%d records before that are in order\n", r.Records)
	case r.Records == 0:
		b.WriteString("audit log is empty\n")
	default:
		fmt.Fprintf(&b, "audit log is in order: %d records, %d bytes, last hash %s\n", r.Records, r.Size, r.Hash)
	}
	if r.Lag > 0 {
		fmt.Fprintf(&b, "the head file does not count the last %d yet, as after a crash; the next record repairs that\n", r.Lag)
	}
	return b.String()
}
