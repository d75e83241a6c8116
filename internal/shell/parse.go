package shell

import (
	"bytes"
	"errors"
	"strings"
	"sync"

	"mvdan.cc/sh/v3/syntax"
)

// A press parses and prints; making one costs more than most lines.
type press struct {
	parser  *syntax.Parser
	printer *syntax.Printer
	text    strings.Reader
	out     bytes.Buffer
}

var presses = [...]sync.Pool{
	Bash:  {New: func() any { return newPress(Bash) }},
	POSIX: {New: func() any { return newPress(POSIX) }},
}

func newPress(d Dialect) *press {
	return &press{parser: syntax.NewParser(syntax.Variant(d.variant())), printer: syntax.NewPrinter()}
}

func parse(source string, d Dialect) (*syntax.File, error) {
	p := presses[d].Get().(*press)
	defer presses[d].Put(p)
	p.text.Reset(source)
	return p.parser.Parse(&p.text, "")
}

func (p *press) print(n syntax.Node) (string, error) {
	p.out.Reset()
	err := p.printer.Print(&p.out, n)
	return strings.TrimRight(p.out.String(), "\n"), err
}

var errUnstable = errors.New("printed anew it reads differently")

// canonical prints a tree as the text that is executed. Unless that is the
// source itself, it must be what the printed text reads as.
func canonical(f *syntax.File, source string, d Dialect) (string, error) {
	p := presses[d].Get().(*press)
	defer presses[d].Put(p)
	text, err := p.print(f)
	if err != nil || text == source {
		return text, err
	}
	p.text.Reset(text)
	again, err := p.parser.Parse(&p.text, "")
	if err != nil {
		return "", errUnstable
	}
	if twice, err := p.print(again); err != nil || twice != text {
		return "", errUnstable
	}
	return text, nil
}
