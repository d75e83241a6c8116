package shell

import (
	"bytes"
	"errors"
	"fmt"
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
	file, err := p.parser.Parse(&p.text, "")
	if err == nil {
		err = checkComments(source, file)
	}
	if err == nil && d == Bash && strings.Contains(source, "&") {
		syntax.Walk(file, splitBoth)
	}
	return file, err
}

// splitBoth writes "&>FILE" as ">FILE 2>&1", which means the same (bash(1),
// Redirecting Standard Output and Standard Error). To dash, the first ends a
// command in the background and begins another.
func splitBoth(n syntax.Node) bool {
	stmt, ok := n.(*syntax.Stmt)
	if !ok {
		return true
	}
	var list []*syntax.Redirect
	for _, x := range stmt.Redirs {
		list = append(list, x)
		switch x.Op {
		case syntax.RdrAll:
			x.Op = syntax.RdrOut
		case syntax.AppAll:
			x.Op = syntax.AppOut
		default:
			continue
		}
		pos := x.Word.Pos()
		list = append(list, &syntax.Redirect{
			OpPos: pos, Op: syntax.DplOut, N: &syntax.Lit{ValuePos: pos, ValueEnd: pos, Value: "2"},
			Word: &syntax.Word{Parts: []syntax.WordPart{&syntax.Lit{ValuePos: pos, ValueEnd: pos, Value: "1"}}},
		})
	}
	stmt.Redirs = list
	return true
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

// MaxText is the longest text that Canonical prints, in bytes. The parser
// follows what is nested by calling itself, which for the worst text of this
// length takes a stack of some 128 MB.
const MaxText = 32 << 10

// long lets one text above MaxLine be parsed at a time, for its stack.
var long sync.Mutex

// Canonical prints a text anew, as Read does it, even a text that Read does not
// judge because a person would not see all of it. It errs where the text can't
// be parsed, reads differently when it is printed, or is longer than MaxText.
func Canonical(source string, d Dialect) (string, error) {
	if len(source) > MaxText {
		return "", fmt.Errorf("the text has %d bytes; want at most %d", len(source), MaxText)
	}
	if len(source) > MaxLine {
		long.Lock()
		defer long.Unlock()
	}
	file, err := parse(source, d)
	if err != nil {
		return "", fmt.Errorf("the text can't be parsed: %w", err)
	}
	return canonical(file, source, d)
}
