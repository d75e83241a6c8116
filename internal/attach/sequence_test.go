package attach

import (
	"bytes"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/bawn-dev/bawn/internal/terminal/modes"
)

// TestQuestionsAreNotRepeated: what a terminal would answer would be typed into
// the guest by everybody who looks on.
func TestQuestionsAreNotRepeated(t *testing.T) {
	for _, ask := range []string{
		"\x1b[c", "\x1b[>c", "\x1b[>0c", "\x1b[=c", "\x1b[5n", "\x1b[6n", "\x1b[?6n", "\x1b[?996n", "\x1b[>q", "\x1b[?2026$p", "\x1b[4$p", "\x1b[x", "\x1b[18t", "\x1b[14t", "\x1b[21t",
		"\x1b[?u", "\x1bZ", "\x1b]10;?\a", "\x1b]11;?\x1b\\", "\x1b]4;1;?\a", "\x1b]52;c;?\a", "\x1bP$qm\x1b\\", "\x1bP+q544e\x1b\\", "\x1b_Gi=1,a=q;AAAA\x1b\\", "\x05",
		"\a", "\x1b]52;c;aGk=\a", "\x1b]9;hello\a", "\x1b]777;notify;a;b\a",
	} {
		s := screen{}
		if got := s.feed([]byte("a" + ask + "b")); string(got) != "ab" {
			t.Errorf("%q: got %q, want ab", ask, got)
		}
		if got := s.again(); string(got) != "ab" {
			t.Errorf("%q: replayed as %q, want ab", ask, got)
		}
	}
}

func TestOrdinaryOutputStays(t *testing.T) {
	for _, out := range []string{
		"text\r\n", "\x1b[1;31mred\x1b[0m", "\x1b[2J\x1b[H", "\x1b[?25l\x1b[?25h", "\x1b]0;title\a", "\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "\x1b(0qqq\x1b(B", "\x1b7\x1b8", "\x1bM",
		"\x1b[22;0;0t", "\x1b[>4;2m", "\x1b[2 q", "\x1b[!p", "é漢字😀", "\x1bPq#0;2;0;0;0~-\x1b\\", "\x18\x1a",
	} {
		s := screen{}
		if got := s.feed([]byte(out)); string(got) != out {
			t.Errorf("%q became %q", out, got)
		}
	}
}

// TestBordersDontMatter: however output is cut into writes, the same comes out.
func TestBordersDontMatter(t *testing.T) {
	parts := rapid.SampledFrom([]string{
		"a", "\n", "\x1b", "[", "]", "0;t", "\a", "\x1b\\", "\x1b[6n", "\x1b[?1049h", "\x1b[?1049l", "?", ";", "1", "m", "h", "P", "_", "\x1b]11;?\a", "\x1b[>1u", "\x1b[?25l", "c", "\x18", "é", "(0",
	})
	rapid.Check(t, func(t *rapid.T) {
		text := []byte(strings.Join(rapid.SliceOf(parts).Draw(t, "parts"), ""))
		whole, cut := screen{}, screen{}
		want := whole.feed(text)
		var got []byte
		for rest := text; len(rest) > 0; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "n")
			got = append(got, cut.feed(rest[:n])...)
			rest = rest[n:]
		}
		if !bytes.Equal(got, want) || !bytes.Equal(whole.again(), cut.again()) || !bytes.Equal(whole.Undo(), cut.Undo()) {
			t.Errorf("%q: got %q %q %q, want %q %q %q", text, got, cut.again(), cut.Undo(), want, whole.again(), whole.Undo())
		}
	})
}

func TestModesAreUndone(t *testing.T) {
	for set, undo := range map[string]string{
		"":                                       "\x1b[0m",
		"\x1b[?1049h":                            "\x1b[0m\x1b[?1049l",
		"\x1b[?1049h\x1b[?1049l":                 "\x1b[0m",
		"\x1b[?25l":                              "\x1b[?25h\x1b[0m",
		"\x1b[?25l\x1b[?25h":                     "\x1b[0m",
		"\x1b[?1000;1006h\x1b[?2004h":            "\x1b[?1000l\x1b[?1006l\x1b[?2004l\x1b[0m",
		"\x1b[>1u\x1b[>5u":                       "\x1b[<2u\x1b[0m",
		"\x1b[>1u\x1b[<u":                        "\x1b[0m",
		"\x1b[>4;2m":                             "\x1b[>4m\x1b[0m",
		"\x1b[>4;2m\x1b[>4m":                     "\x1b[0m",
		"\x1b=":                                  "\x1b>\x1b[0m",
		"\x1b[3 q":                               "\x1b[0 q\x1b[0m",
		"\x1b[2;10r":                             "\x1b7\x1b[r\x1b8\x1b[0m",
		"\x1b(0":                                 "\x1b(B\x1b[0m",
		"\x1b[?1h\x1b=\x1b[?1002h\x1b[?25l\x1bc": "\x1b[0m",
		"\x1b[?25l\x1b[!p":                       "\x1b[0m",
	} {
		s := screen{}
		s.feed([]byte(set))
		if got := string(s.Undo()); got != undo {
			t.Errorf("%q is undone by %q, want %q", set, got, undo)
		}
	}
}

// TestScrollBack: the tail is bounded, begins at a line, and knows which screen
// it began on.
func TestScrollBack(t *testing.T) {
	s := screen{}
	s.feed([]byte("\x1b[?1049h\x1b[?2004h"))
	line := []byte(strings.Repeat("x", 99) + "\n")
	for range 3 * scrollBack / len(line) {
		s.feed(line)
	}
	again := s.again()
	if len(again) > 2*scrollBack+100 {
		t.Errorf("%d bytes are kept", len(again))
	}
	if !bytes.HasPrefix(again, []byte("\x1b[?1049h\x1b[?2004hx")) || !bytes.HasSuffix(again, []byte("x\n")) {
		t.Errorf("begins with %q and ends with %q", again[:20], again[len(again)-20:])
	}
	if rest := bytes.TrimPrefix(again, []byte("\x1b[?1049h\x1b[?2004h")); bytes.IndexByte(rest, '\n') != 99 {
		t.Errorf("begins with a part of a line: %q", rest[:120])
	}
}

// TestOddSequences are cut as a terminal cuts them, so that no question comes
// together out of what is left.
func TestOddSequences(t *testing.T) {
	for in, want := range map[string]string{
		"\x1b[3\x1b[1mx": "\x1b[1mx", "\x1b]0;broken\x1b[1mx": "\x1b[1mx", "\x1b\x1b[cx": "x", "\x1b[6\nnx": "\nx", "\x1b\r[cx": "\rx", "\x1b[6\x18n": "n",
		"\x1b[\x1b[6nc": "c", "\x1b[6\x7fnx": "x", "\x1b[\x05cx": "x", "\x1bP+q\a\x1b\\x": "x", "\x1b]11;?\x1b]11;?\ax": "x", "\x1b[\a\x1b[1m": "\x1b[1m",
	} {
		s := screen{}
		if got := s.feed([]byte(in)); string(got) != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
}

// TestLongSequences: what never ends takes no room.
func TestLongSequences(t *testing.T) {
	for _, begin := range []string{"\x1b]52;c;", "\x1b[", "\x1b("} {
		s := screen{}
		for range 100 {
			s.feed(append([]byte(begin), bytes.Repeat([]byte("1"), modes.MaxSequence/10)...))
			begin = ""
		}
		if got := s.feed([]byte("\x18text")); !bytes.HasSuffix(got, []byte("text")) || s.Pending() > 4*modes.MaxSequence {
			t.Errorf("%q: %q came out, %d bytes are kept", begin, got, s.Pending())
		}
	}
}

func FuzzScreen(f *testing.F) {
	for _, seed := range []string{"", "\x1b[", "\x1b]0;x", "\x1b[?1049h\x1b[6n", "\x1bP$q", "\x1b\x1b\x1b[[", "\x1b[>99999999999999999999u\x1b[<99999999999u\x1b[?;;;h"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		s := screen{}
		got := s.feed(b)
		if len(got) > len(b) {
			t.Errorf("%d bytes became %d", len(b), len(got))
		}
		if bytes.Contains(got, []byte("\x1b[6n")) || bytes.Contains(got, []byte("\x1b[c")) {
			t.Errorf("%q kept a question: %q", b, got)
		}
		s.again()
		s.Undo()
	})
}
