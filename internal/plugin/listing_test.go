package plugin

import (
	"fmt"
	"io"
	"strings"
	"testing"
)

const hello = `{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","serverInfo":{"name":"calc","version":"1"},"instructions":"be kind"}}` + "\n"

func TestList(t *testing.T) {
	answers := `{"jsonrpc":"2.0","method":"notifications/message","params":{}}
{"jsonrpc":"2.0","id":"x","method":"roots/list"}
` + hello + `{"jsonrpc":"2.0","id":2,"result":{"tools":[{"name":"add","description":"adds","inputSchema":{"type":"object"},"_meta":{}}],"nextCursor":"2"}}
{"jsonrpc":"2.0","id":3,"result":{"tools":[{"name":"sub","description":"subtracts","inputSchema":{"type":"object"}}]}}
`
	var sent strings.Builder
	l, err := List(strings.NewReader(answers), &sent)
	if err != nil || l.Name != "calc" || l.Instructions != "be kind" || len(l.Tools) != 2 || l.Tools[1].Name != "sub" || string(l.Tools[0].InputSchema) != object {
		t.Errorf("%+v, %v", l, err)
	}
	lines := strings.Split(strings.TrimSpace(sent.String()), "\n")
	if len(lines) != 5 || !strings.Contains(lines[1], "-32601") || !strings.Contains(lines[4], `"cursor":"2"`) {
		t.Errorf("%q", lines)
	}
}

// repeat writes the text for ever.
type repeat struct {
	text string
	rest string
}

func (r *repeat) Read(p []byte) (int, error) {
	if r.rest == "" {
		r.rest = r.text
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// pages answers each tools/list with a page and a cursor.
type pages struct{ n, tools int }

func (p *pages) Read(out []byte) (int, error) {
	p.n++
	if p.n == 1 {
		return copy(out, hello), nil
	}
	tool := strings.TrimSuffix(strings.Repeat(`{"name":"a"},`, p.tools), ",")
	return copy(out, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{"tools":[%s],"nextCursor":"x"}}`+"\n", p.n, tool)), nil
}

// TestListBounds: a server that never stops is left.
func TestListBounds(t *testing.T) {
	for name, c := range map[string]struct {
		from io.Reader
		want string
	}{
		"a line without end": {&repeat{text: strings.Repeat("x", 4096)}, "more than 4194304 bytes"},
		"notifications":      {&repeat{text: `{"jsonrpc":"2.0","method":"notifications/message"}` + "\n"}, "messages and no answer"},
		"other answers":      {&repeat{text: `{"jsonrpc":"2.0","id":99,"result":{}}` + "\n"}, "messages and no answer"},
		"pages":              {&pages{}, "more than 64 pages"},
		"tools":              {&pages{tools: 200}, "more than 1024 tools"},
		"an error":           {strings.NewReader(`{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"no\u001b[2J"}}` + "\n"), `"no\x1b[2J"`},
		"no message":         {strings.NewReader("listening on port 3000\n"), "no message"},
		"the end":            {strings.NewReader(hello), "the server ended"},
	} {
		if l, err := List(c.from, io.Discard); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %+v, %v; want %s", name, l, err, c.want)
		}
		if p, ok := c.from.(*pages); ok && p.n > maxPages+1 {
			t.Errorf("%s: %d answers are read", name, p.n)
		}
	}
}

func FuzzList(f *testing.F) {
	f.Add(hello + `{"jsonrpc":"2.0","id":2,"result":{"tools":[{"name":"a"}]}}` + "\n")
	f.Add("{}\n[]\n")
	f.Fuzz(func(t *testing.T, answers string) {
		l, err := List(strings.NewReader(answers), io.Discard)
		if err == nil && len(l.Tools) > maxTools {
			t.Error("too many")
		}
		Compare(Pins{}, l.Tools)
	})
}
