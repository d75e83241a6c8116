package modes

import (
	"strings"
	"testing"
)

// shown is what a terminal's title is after output: it knows OSC 0, 1 and 2, a stack of
// titles and RIS.
func shown(output string) (title string) {
	var stack []string
	var s Splitter
	s.Split([]byte(output), func([]byte) {}, func(seq []byte) {
		switch kind, text := titleOf(seq); {
		case kind != 0 && kind != '1':
			title = string(text)
		case string(seq) == "\x1b[22;0t":
			stack = append(stack, title)
		case movesTitles(seq) && seq[1] == '[' && len(stack) > 0:
			title, stack = stack[len(stack)-1], stack[:len(stack)-1]
		case movesTitles(seq):
			title = ""
		}
	})
	return title
}

// TestLabel: whatever title a guest sets, however its output is cut, the terminal's begins
// with the mark until the end, and is then what it was before.
func TestLabel(t *testing.T) {
	for output, want := range map[string]string{
		"":                                    "bawn: sh",
		"text":                                "bawn: sh",
		"\x1b]0;mine\a":                       "bawn: mine",
		"\x1b]2;mine\x1b\\ text":              "bawn: mine",
		"\x1b]2;a\a\x1b]2;b\a":                "bawn: b",
		"\x1b]2;ada@host: ~\a":                "bawn: ada@host: ~",
		"\x1b]lmine\x1b\\":                    "bawn: mine",
		"\x1b]2;\a":                           "bawn: sh",
		"\x1b]2;bawn: claude\a":               "bawn: claude",
		"\x1b]2;mine\a\x1b[23;0t":             "bawn: mine",
		"\x1b[23;0t":                          "bawn: sh",
		"\x1b[22;0t\x1b]2;editor\a\x1b[23;0t": "bawn: editor",
		"\x1bc":                               "bawn: sh",
		"\x1b]2;" + strings.Repeat("x", 600) + "\a":    "bawn: sh",
		"\x1b]1;icon\a\x1b]2;é\aé":                     "bawn: é",
		"\x1b]2;a\a" + strings.Repeat("\x1b]1;b\a", 5): "bawn: a",
	} {
		for cut := range len(output) + 1 {
			l, s := Label{Mark: "bawn: ", Name: "sh"}, Splitter{}
			all := "\x1b]2;before\a" + string(l.Begin())
			for _, piece := range []string{output[:cut], output[cut:]} {
				s.Split([]byte(piece), func([]byte) {}, l.See)
				all += piece + string(l.After([]byte(piece), s.Pending()))
			}
			if got := shown(all); got != want {
				t.Errorf("%q cut at %d: the title is %q; want %q", output, cut, got, want)
			}
			if end := shown(all + string(l.End())); end != "before" && !strings.Contains(output, "\x1b[23") {
				t.Errorf("%q cut at %d: the title is %q after the end", output, cut, end)
			}
			if again := l.End(); again != nil {
				t.Errorf("%q: it ends twice, with %q", output, again)
			}
		}
	}
}

// TestLabelBreaksNothing: what Bawn writes stands neither in a character nor in a sequence.
func TestLabelBreaksNothing(t *testing.T) {
	const output = "\x1b]2;mine\a\xe2\x80\xa6\x1b[1mbold\x1b]2;x\x1b\\"
	for cut := range len(output) + 1 {
		l, s := Label{Mark: "bawn: ", Name: "sh"}, Splitter{}
		l.Begin()
		s.Split([]byte(output[:cut]), func([]byte) {}, l.See)
		inserted := l.After([]byte(output[:cut]), s.Pending())
		var plain strings.Builder
		var after Splitter
		after.Split([]byte(output[:cut]+string(inserted)+output[cut:]), func(b []byte) { plain.Write(b) }, func([]byte) {})
		if plain.String() != "…bold" {
			t.Errorf("cut at %d, with %q between: text %q", cut, inserted, plain.String())
		}
	}
}

// TestLabelQuiet: without a mark, before it begins and after it ends nothing is written.
func TestLabelQuiet(t *testing.T) {
	var none Label
	see := func(l *Label) string {
		l.See([]byte("\x1b]2;mine\a"))
		return string(l.After([]byte("x"), 0))
	}
	marked := Label{Mark: "bawn: "}
	if got := string(none.Begin()) + see(&none) + string(none.End()) + see(&marked); got != "" {
		t.Errorf("it writes %q", got)
	}
	for name, want := range map[string]bool{"xterm-256color": true, "tmux": true, "screen": false, "linux": false, "dumb": false, "": false, "vt100": false, "st-256color": true} {
		if got := Titled(func(n string) string { return map[string]string{"TERM": name}[n] }); got != want {
			t.Errorf("TERM=%q has a title: %v", name, got)
		}
	}
}

// FuzzLabel: a guest's output makes nothing of it but titles with the mark.
func FuzzLabel(f *testing.F) {
	f.Add([]byte("\x1b]2;mine\a\x1b[23t\x1bc\x1b]l\x1b\\"))
	f.Fuzz(func(t *testing.T, output []byte) {
		l, s := Label{Mark: "bawn: ", Name: "sh"}, Splitter{}
		l.Begin()
		s.Split(output, func([]byte) {}, l.See)
		written := l.After(output, s.Pending())
		var w Splitter
		w.Split(written, func(b []byte) { t.Errorf("text %q", b) }, func(seq []byte) {
			if kind, text := titleOf(seq); kind == 0 || len(text) <= maxTitle && !strings.HasPrefix(string(text), "bawn: ") {
				if len(seq) <= maxTitle {
					t.Errorf("%q is no title with the mark", seq)
				}
			}
		})
		if w.Pending() != 0 {
			t.Errorf("%q is not complete", written)
		}
	})
}
