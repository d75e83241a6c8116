package cli

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/term"

	"github.com/bawn-dev/bawn/internal/audit"
	"github.com/bawn-dev/bawn/internal/launch"
	"github.com/bawn-dev/bawn/internal/redact"
	"github.com/bawn-dev/bawn/internal/verb"
)

// A printer writes entries in one form.
type printer interface {
	print(audit.Entry) error
	flush() error
}

func newPrinter(e *launch.Env, asJSON bool, batch int) printer {
	w := bufio.NewWriter(e.Stdout)
	if asJSON {
		return &jsonPrinter{w: w, each: batch == 1}
	}
	return &tablePrinter{w: w, batch: batch, colour: wantColour(e), width: terminalWidth(e)}
}

// wantColour reports whether stdout is a terminal that shows colours and the
// user has not refused them (no-color.org).
func wantColour(e *launch.Env) bool {
	return e.Getenv("NO_COLOR") == "" && e.Getenv("TERM") != "dumb" && term.IsTerminal(int(e.Stdout.Fd()))
}

// terminalWidth returns the columns of the terminal that stdout is, or 0.
func terminalWidth(e *launch.Env) int {
	width, _, err := term.GetSize(int(e.Stdout.Fd()))
	if err != nil {
		return 0
	}
	return width
}

// printEntries prints all entries. A broken line is reported on stderr and makes
// the exit code 1; later lines are still printed.
func printEntries(e *launch.Env, entries iter.Seq2[audit.Entry, error], p printer) error {
	broken := false
	for entry, err := range entries {
		var fault *audit.Fault
		switch {
		case errors.As(err, &fault):
			broken = true
			fmt.Fprintf(e.Stderr, "bawn: warning: %s\n", redact.Visible(fault.Error()))
			continue
		case err != nil:
			return errors.Join(&verb.Error{Code: verb.ExitInternal, Err: fmt.Errorf("audit log can't be read: %w", err)}, p.flush())
		}
		if err := p.print(entry); err != nil {
			return err
		}
	}
	if err := p.flush(); err != nil {
		return err
	}
	if broken {
		return verb.Status(1)
	}
	return nil
}

// A jsonPrinter prints the log's own lines, which hold no character that acts
// on a terminal (docs/audit-format.md).
type jsonPrinter struct {
	w    *bufio.Writer
	each bool // write each record at once
}

func (p *jsonPrinter) print(entry audit.Entry) error {
	p.w.Write(entry.Raw) // its error stays for the next call
	err := p.w.WriteByte('\n')
	if p.each && err == nil {
		return p.flush()
	}
	return err
}

func (p *jsonPrinter) flush() error { return p.w.Flush() }

var csvHeader = []string{"seq", "id", "timestamp", "session", "parent", "agentId", "resourceType", "operation", "resource",
	"args", "dir", "requested", "resolved", "source", "rule", "reason", "ticket", "provider", "mode", "exit", "durationMs", "bytes", "details"}

// A csvPrinter prints one row for each record; args and details as JSON.
type csvPrinter struct {
	w      *csv.Writer
	header bool // was written
}

func (p *csvPrinter) print(entry audit.Entry) error {
	v := entry.Event
	row := []string{strconv.FormatUint(entry.Seq, 10), v.ID, v.Time.Format(time.RFC3339Nano), v.Session, v.Parent, v.Agent, v.Kind,
		v.Operation, v.Resource, jsonText(v.Args, len(v.Args)), v.Dir, v.Requested.String(), v.Resolved.String(), v.Source, v.Rule,
		v.Reason, v.Ticket, v.Provider, v.Mode.String(), "", strconv.FormatInt(v.DurationMS, 10), strconv.FormatInt(v.Bytes, 10),
		jsonText(v.Details, len(v.Details))}
	if v.Exit != nil {
		row[19] = strconv.Itoa(*v.Exit)
	}
	for i := range row {
		row[i] = csvCell(row[i])
	}
	if err := p.writeHeader(); err != nil {
		return err
	}
	return p.w.Write(row)
}

func (p *csvPrinter) writeHeader() error {
	if p.header {
		return nil
	}
	p.header = true
	return p.w.Write(csvHeader)
}

func (p *csvPrinter) flush() error {
	if err := p.writeHeader(); err != nil {
		return err
	}
	p.w.Flush()
	return p.w.Error()
}

// csvCell makes a cell that a spreadsheet takes for text: one that begins like
// a formula gets a quote in front.
func csvCell(s string) string {
	s = redact.Visible(s)
	if _, err := strconv.ParseInt(s, 10, 64); err == nil || s == "" || !strings.ContainsRune("=+-@", rune(s[0])) {
		return s
	}
	return "'" + s
}

// jsonText returns v as JSON, or "" where it has no elements.
func jsonText(v any, elements int) string {
	if elements == 0 {
		return ""
	}
	b, _ := json.Marshal(v) // strings only: always possible
	return string(b)
}

// A tablePrinter aligns columns over a batch of rows; wider cells of a later
// batch widen the column from there on. Where width is not 0, ids are shortened
// and long texts cut to it.
type tablePrinter struct {
	w      *bufio.Writer
	batch  int // rows to align before any is written
	colour bool
	width  int // of the terminal, or 0
	rows   [][]string
	widths [7]int
	header bool // was written
}

var tableHeader = []string{"TIME", "SESSION", "VERDICT", "ACTION", "RESOURCE", "RULE", "REASON"}

// maxPad is how wide a column is made for the sake of alignment.
const maxPad = 48

func (p *tablePrinter) print(entry audit.Entry) error {
	v := entry.Event
	if !p.header {
		p.header = true
		p.rows = append(p.rows, tableHeader)
	}
	p.rows = append(p.rows, []string{v.Time.UTC().Format("2006-01-02 15:04:05Z"), cell(v.Session), v.Resolved.String(),
		cell(v.Kind + "/" + v.Operation), cell(v.Resource), cell(v.Rule), cell(v.Reason)})
	if len(p.rows) < p.batch {
		return nil
	}
	return p.flush()
}

// cell shows untrusted text: nothing in it can act on the terminal or look
// like the space between two columns.
func cell(s string) string {
	if s == "" {
		return "-"
	}
	return strings.ReplaceAll(redact.Visible(s), "  ", ` \x20`)
}

func (p *tablePrinter) flush() error {
	p.fit()
	for _, row := range p.rows {
		for i, c := range row {
			p.widths[i] = max(p.widths[i], min(utf8.RuneCountInString(c), maxPad))
		}
	}
	for _, row := range p.rows {
		p.writeRow(row)
	}
	p.rows = p.rows[:0]
	return p.w.Flush()
}

// On a terminal: how much of a session's id is shown, and how much of a long
// text at least.
const (
	shownID  = 8
	readable = 24
)

// fit cuts the rows to the terminal's width, as far as they stay readable.
func (p *tablePrinter) fit() {
	if p.width == 0 {
		return
	}
	var widest [7]int
	for _, row := range p.rows {
		if id := []rune(row[1]); len(id) > shownID {
			row[1] = string(id[:shownID])
		}
		row[5] = cut(row[5], readable)
		for i, c := range row {
			widest[i] = max(widest[i], utf8.RuneCountInString(c))
		}
	}
	room := p.width - 2*(len(widest)-1)
	for _, i := range []int{0, 1, 2, 3, 5} {
		room -= widest[i]
	}
	resource := max(readable, room-min(widest[6], max(readable, room/3)))
	reason := max(readable, room-min(widest[4], resource))
	for _, row := range p.rows {
		row[4], row[6] = cut(row[4], resource), cut(row[6], reason)
	}
}

func (p *tablePrinter) writeRow(row []string) {
	for i, c := range row {
		pad := strings.Repeat(" ", max(0, p.widths[i]-utf8.RuneCountInString(c))+2)
		if i == len(row)-1 {
			pad = ""
		}
		if p.colour && i == 2 {
			c = colourOf(c) + c + "\x1b[0m"
		}
		p.w.WriteString(c + pad) // its error stays for Flush
	}
	p.w.WriteByte('\n')
}

// colourOf returns the escape sequence that begins a verdict's colour.
func colourOf(verdict string) string {
	switch verdict {
	case "deny":
		return "\x1b[31m"
	case "ask":
		return "\x1b[33m"
	case "allow":
		return "\x1b[32m"
	}
	return "\x1b[1m" // the heading
}
