package policycli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime/debug"

	"github.com/bawn-dev/bawn"
	"github.com/bawn-dev/bawn/internal/verb"
)

// A decisionLine is one decision as JSON.
type decisionLine struct {
	ID        json.RawMessage `json:"id,omitempty"`
	Verdict   bawn.Verdict    `json:"verdict"`
	Reason    string          `json:"reason"`
	Rule      string          `json:"rule"`
	Source    string          `json:"source"`
	Canonical string          `json:"canonical,omitempty"`
	Env       []string        `json:"env,omitempty"`
	Trace     []stepLine      `json:"trace"`
}

type stepLine struct {
	Stage   string       `json:"stage"`
	Verdict bawn.Verdict `json:"verdict"`
	Why     string       `json:"why"`
}

func newDecisionLine(id json.RawMessage, d bawn.Decision) decisionLine {
	return decisionLine{
		ID: id, Verdict: d.Verdict, Reason: d.Reason, Rule: d.Rule, Source: d.Source.String(),
		Canonical: d.Canonical, Env: d.Env, Trace: stepLines(d.Trace),
	}
}

func stepLines(trace []bawn.Step) []stepLine {
	out := make([]stepLine, len(trace))
	for i, s := range trace {
		out[i] = stepLine(s)
	}
	return out
}

// maxAction is the longest line of JSON that is read, in bytes.
const maxAction = 1 << 20

// gcPercent lets the stream's garbage grow to some megabytes: what is kept
// from one line to the next is little.
const gcPercent = 400

// stream decides one action a line. A line that is not an action is denied, and
// makes the exit code 2. Each decision is written before stream waits for more
// input.
func (d *decider) stream(r io.Reader, w io.Writer) error {
	defer debug.SetGCPercent(debug.SetGCPercent(gcPercent))
	in := bufio.NewReaderSize(r, 64<<10)
	out := bufio.NewWriterSize(w, 64<<10)
	enc := verb.JSONLines(out)
	wrong := 0
	for n := 1; ; n++ {
		line, err := readLine(in, d.buffer[:0])
		if d.buffer = line; err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, errLong) {
			return &verb.Error{Code: verb.ExitInternal, Err: errors.Join(fmt.Errorf("read the actions: %w", err), out.Flush()), Hint: "the lines before were decided"}
		}
		if bad, err := d.answer(enc, n, line, err); err != nil {
			return verb.OutputError(d.e.Stdout, err)
		} else if bad {
			wrong++
		}
		if err != nil || in.Buffered() == 0 {
			if err := out.Flush(); err != nil {
				return verb.OutputError(d.e.Stdout, err)
			}
		}
		if errors.Is(err, io.EOF) {
			break
		}
	}
	if wrong > 0 {
		return verb.Usage("see \"bawn policy decide --help\" for what an action has", "lines that are no actions: %d; each was denied, with what is wrong as its reason", wrong)
	}
	return nil
}

// answer decides a line and writes the decision; a blank line gets none.
func (d *decider) answer(enc *json.Encoder, n int, line []byte, err error) (bad bool, _ error) {
	blank := len(bytes.TrimSpace(line)) == 0
	if blank && !errors.Is(err, errLong) {
		return false, nil
	}
	l, bad := d.line(n, line, err)
	return bad, enc.Encode(l)
}

var errLong = errors.New("the line is longer than 1 MiB")

// readLine appends a line to buffer, or skips one that is too long.
func readLine(in *bufio.Reader, buffer []byte) ([]byte, error) {
	long := false
	for {
		part, err := in.ReadSlice('\n')
		if long = long || len(buffer)+len(part) > maxAction; !long {
			buffer = append(buffer, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case long && (err == nil || errors.Is(err, io.EOF)):
			return nil, errLong // the end, if it is one, is met again
		default:
			return buffer, err
		}
	}
}

// line decides one line of JSON.
func (d *decider) line(n int, data []byte, err error) (l decisionLine, bad bool) {
	a := actionLine{situation: d.base}
	if !errors.Is(err, errLong) {
		err = parseAction(data, &a)
	}
	if err == nil {
		var decision bawn.Decision
		if decision, err = d.decide(&a); err == nil {
			return newDecisionLine(a.ID, decision), false
		}
	}
	return newDecisionLine(a.ID, bawn.Denied(fmt.Sprintf("line %d: %v", n, err), "builtin:invalid-action")), true
}
