package undocli

import (
	"bufio"
	"errors"
	"fmt"
	"strings"

	"github.com/bawn-dev/bawn/internal/copies"
	"github.com/bawn-dev/bawn/internal/launch"
	"github.com/bawn-dev/bawn/internal/redact"
	"github.com/bawn-dev/bawn/internal/undo"
	"github.com/bawn-dev/bawn/internal/verb"
)

const pickHelp = `y  take this over
n  leave this in the copy
f  take this and the rest of the file over
d  leave this and the rest of the file
a  take this and all that follows over
q  leave this and all that follows
`

// A picker asks a human about each change.
type picker struct {
	e    *launch.Env
	in   *bufio.Reader
	p    printer
	rest byte // 'a' or 'q' once it was the answer
}

// pick asks about a plan's changes, and narrows the plan.
func pick(e *launch.Env, w *workspace, p *undo.Plan) error {
	k := &picker{e: e, in: bufio.NewReader(e.Stdin), p: printer{w: w, out: e.Stdout, colour: verb.IsTerminal(e.Stdout) && e.Getenv("NO_COLOR") == ""}}
	ask, follow := p.Pieces()
	for _, x := range ask {
		if err := k.piece(x); err != nil {
			return err
		}
	}
	if err := p.Narrow(ask, follow); err != nil {
		return internal(err)
	}
	if p.Empty() {
		return &verb.Error{Code: 1, Err: errors.New("nothing was applied")}
	}
	return nil
}

// piece asks about one file: whole, or hunk by hunk.
func (k *picker) piece(x *undo.Piece) error {
	if k.rest == 0 {
		for _, s := range x.Steps {
			k.p.line("", strings.TrimSpace(copies.StepWord(s)+" "+k.p.w.show(s.Path)+" "+redact.Visible(s.Detail)))
		}
		k.p.head(x.Lines)
	}
	file := k.rest
	for i := range x.Chosen {
		if file == 0 {
			hunks := x.Lines.Hunks
			if len(x.Chosen) > 1 {
				hunks = hunks[i : i+1]
			}
			for _, h := range hunks {
				k.p.hunk(h)
			}
			answer, err := k.ask(fmt.Sprintf("(%d/%d) take this over?", i+1, len(x.Chosen)))
			if err != nil {
				return err
			}
			switch answer {
			case 'a', 'q':
				k.rest, file = answer, answer
			case 'f', 'd':
				file = answer
			default:
				x.Chosen[i] = answer == 'y'
				continue
			}
		}
		x.Chosen[i] = file == 'a' || file == 'f'
	}
	return k.p.err
}

// ask reads one answer. Without one nothing is applied.
func (k *picker) ask(question string) (byte, error) {
	for k.p.err == nil {
		k.p.out.Write([]byte(question + " [y,n,f,d,a,q,?] "))
		line, err := k.in.ReadString('\n')
		if err != nil {
			return 0, &verb.Error{Code: 1, Err: errors.New("nothing was applied")}
		}
		if answer := strings.ToLower(strings.TrimSpace(line)); len(answer) == 1 && strings.Contains("ynfdaq", answer) {
			return answer[0], nil
		}
		_, k.p.err = k.p.out.Write([]byte(pickHelp))
	}
	return 0, k.p.err
}
