package cli

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/bawn-dev/bawn/internal/attach"
	"github.com/bawn-dev/bawn/internal/launch"
	"github.com/bawn-dev/bawn/internal/redact"
	"github.com/bawn-dev/bawn/internal/verb"
)

func newLogsCommand(e *launch.Env) *cobra.Command {
	r := attach.LogReader{}
	c := &cobra.Command{
		Use:   "logs [flags] [SESSION]",
		Short: "Show what a session in the background wrote",
		Long: fmt.Sprintf(`Show the output of a session that was started with --detach or --attachable: the
last %d to %d MiB of it, kept for %d hours after its end.

A terminal is shown the session's colours and its cursor's movements; without
one (in a pipe, in a file) they are made visible, as \x1b[1m. What a session in
full-screen mode looks like now is what "bawn attach --read-only" shows.`, attach.LogLimit>>21, attach.LogLimit>>20, int(attach.Kept.Hours())),
		Example: `  bawn logs k3xr
  bawn logs --tail 20 -f k3xr
  bawn logs k3xr | grep -i error`,
		Args: atMostOneSession,
		RunE: func(c *cobra.Command, args []string) error {
			if c.Flags().Changed("tail") && r.Lines <= 0 {
				return verb.Usage("for example: --tail 20", "--tail is %d; want 1 or more", r.Lines)
			}
			return showLog(e, r, strings.Join(args, ""))
		},
	}
	c.Flags().BoolVarP(&r.Follow, "follow", "f", false, "wait for more, until the session ends")
	c.Flags().IntVarP(&r.Lines, "tail", "n", 0, "begin with the last `N` lines (default: with all that is kept)")
	c.ValidArgsFunction = completeSessions(e, func(s attach.Entry) bool { return s.Hosted }, 1)
	verb.CompleteFlags(c, map[string]func() []string{"tail": verb.Fixed("20", "100")})
	return c
}

func showLog(e *launch.Env, r attach.LogReader, id string) error {
	reg, err := openRegistry(e)
	if err != nil {
		return err
	}
	s, err := reg.find(id, func(s attach.Entry) bool { return s.Hosted })
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	r.Dir, r.ID = reg.dir, s.ID
	var w io.Writer = e.Stdout
	seen := &visibleWriter{w: bufio.NewWriter(e.Stdout), each: r.Follow}
	if !verb.IsTerminal(e.Stdout) {
		w = seen
	}
	err = errors.Join(r.Copy(ctx, w), seen.close())
	if verb.IsTerminal(e.Stdout) {
		_, _ = e.Stdout.WriteString("\x1b[0m") // the log may end in the middle of a colour
	}
	if errors.Is(err, fs.ErrNotExist) {
		return &verb.Error{Code: verb.ExitUsage, Err: fmt.Errorf("session %q keeps no output", s.ID), Hint: "what is started with --detach or --attachable does"}
	}
	return err
}

// maxLine is how much of a line is held back until its end comes.
const maxLine = 64 << 10

// A visibleWriter writes lines with all that would act on a terminal, or not be
// seen, made visible.
type visibleWriter struct {
	w    *bufio.Writer
	each bool // write lines at once
	line []byte
}

func (v *visibleWriter) Write(b []byte) (int, error) {
	total := len(b)
	for len(b) > 0 {
		i := bytes.IndexByte(b, '\n')
		if i < 0 {
			v.line, b = append(v.line, b...), nil
		} else {
			v.put(append(v.line, b[:i]...))
			v.w.WriteByte('\n') // its error stays for the next call
			v.line, b = v.line[:0], b[i+1:]
		}
		if len(v.line) > maxLine {
			v.put(v.line)
			v.line = v.line[:0]
		}
	}
	if v.each {
		return total, v.w.Flush()
	}
	return total, nil
}

// put writes a line as it reads: a terminal's lines end in \r\n, and tabs are
// blanks.
func (v *visibleWriter) put(line []byte) {
	for i, part := range strings.Split(strings.TrimSuffix(string(line), "\r"), "\t") {
		if i > 0 {
			v.w.WriteByte('\t')
		}
		v.w.WriteString(redact.Visible(part))
	}
}

func (v *visibleWriter) close() error {
	v.put(v.line)
	return v.w.Flush()
}
