package picture

import (
	"fmt"
	"html"
	"strings"
	"time"

	"github.com/hinshun/vt10x"
)

// Cells of the picture, in pixels.
const (
	cellWidth, cellHeight = 8.4, 19.0
	margin                = 14.0
	still                 = 4 * time.Second // how long the last screen stays
)

// palette are the colours of a terminal's first sixteen.
var palette = []string{
	"#1c2128", "#f47067", "#57ab5a", "#c69026", "#539bf5", "#b083f0", "#39c5cf", "#adbac7",
	"#768390", "#ff938a", "#6bc46d", "#daaa3f", "#6cb6ff", "#dcbdfb", "#56d4dd", "#cdd9e5",
}

// A frame is a screen, as indices of lines, and when it comes.
type frame struct {
	at    time.Duration
	lines []int
}

// A film is what a cast shows: each line once, and the frames that are made of them.
type film struct {
	lines  []string // as SVG
	index  map[string]int
	frames []frame
}

// SVG draws the cast as one animated picture. A viewer who prefers no motion sees the last
// frame.
func (c *Cast) SVG(title string) string {
	f := c.film()
	if len(f.frames) == 0 {
		return ""
	}
	total := f.frames[len(f.frames)-1].at + still
	width, height := float64(c.Width)*cellWidth+2*margin, float64(c.Height)*cellHeight+2*margin
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" width="%.0f" role="img">`+"\n<title>%s</title>\n", width, height, width, html.EscapeString(title))
	b.WriteString("<style>text{font:14px ui-monospace,Menlo,Consolas,\"DejaVu Sans Mono\",monospace;white-space:pre}.b{font-weight:bold}")
	fmt.Fprintf(&b, ".s{animation:s %.2fs steps(1,end) infinite}@media(prefers-reduced-motion:reduce){.s{animation:none}}@keyframes s{", total.Seconds())
	for i, fr := range f.frames {
		fmt.Fprintf(&b, "%.3f%%{transform:translateX(%.0fpx)}", 100*fr.at.Seconds()/total.Seconds(), -float64(i)*width)
	}
	fmt.Fprintf(&b, "100%%{transform:translateX(%.0fpx)}}</style>\n<defs>\n", -float64(len(f.frames)-1)*width)
	for i, l := range f.lines {
		fmt.Fprintf(&b, `<g id="l%d">%s</g>`+"\n", i, l)
	}
	fmt.Fprintf(&b, "</defs>\n"+`<rect width="100%%" height="100%%" rx="8" fill="%s"/>`+"\n", "#22272e")
	fmt.Fprintf(&b, `<svg x="%.0f" y="%.0f" width="%.0f" height="%.0f"><g class="s" transform="translate(%.0f 0)">`+"\n", margin, margin, width-2*margin, height-2*margin, -float64(len(f.frames)-1)*width)
	for i, fr := range f.frames {
		for row, l := range fr.lines {
			if f.lines[l] != "" {
				fmt.Fprintf(&b, `<use href="#l%d" x="%.0f" y="%.0f"/>`, l, float64(i)*width, float64(row)*cellHeight)
			}
		}
		b.WriteString("\n")
	}
	b.WriteString("</g></svg>\n</svg>\n")
	return b.String()
}

// together is how close two changes of the screen may be to be one frame.
const together = 60 * time.Millisecond

// film plays the cast to a terminal, and keeps each screen that differs from the one before.
func (c *Cast) film() *film {
	f := &film{index: map[string]int{}}
	term := vt10x.New(vt10x.WithSize(c.Width, c.Height))
	for i, e := range c.Events {
		_, _ = term.Write([]byte(e.Data)) // it never fails
		if i+1 < len(c.Events) && c.Events[i+1].At-e.At < together {
			continue
		}
		f.add(e.At, term, c.Width, c.Height)
	}
	return f
}

func (f *film) add(at time.Duration, term vt10x.Terminal, width, height int) {
	fr := frame{at: at}
	if len(f.frames) == 0 {
		fr.at = 0
	}
	for row := range height {
		text := line(term, row, width)
		i, ok := f.index[text]
		if !ok {
			i = len(f.lines)
			f.index[text] = i
			f.lines = append(f.lines, text)
		}
		fr.lines = append(fr.lines, i)
	}
	if n := len(f.frames); n == 0 || fmt.Sprint(f.frames[n-1].lines) != fmt.Sprint(fr.lines) {
		f.frames = append(f.frames, fr)
	}
}

// bold is vt10x's attribute, which it does not export.
const bold = 1 << 2

// line draws a row of the terminal: a text for each run of cells that look the same.
func line(term vt10x.Terminal, row, width int) string {
	var b strings.Builder
	for col := 0; col < width; {
		first := term.Cell(col, row)
		run := []rune{}
		from := col
		for ; col < width; col++ {
			g := term.Cell(col, row)
			if g.FG != first.FG || g.Mode&bold != first.Mode&bold {
				break
			}
			run = append(run, max(g.Char, ' '))
		}
		text := strings.TrimRight(string(run), " ")
		trimmed := strings.TrimLeft(text, " ")
		if trimmed == "" {
			continue
		}
		from += len([]rune(text)) - len([]rune(trimmed))
		class := ""
		if first.Mode&bold != 0 {
			class = ` class="b"`
		}
		fmt.Fprintf(&b, `<text x="%.1f" y="14" textLength="%.1f"%s fill="%s">%s</text>`,
			float64(from)*cellWidth, float64(len([]rune(trimmed)))*cellWidth, class, colour(first.FG), html.EscapeString(trimmed))
	}
	return b.String()
}

func colour(c vt10x.Color) string {
	if int(c) < len(palette) {
		return palette[c]
	}
	return "#adbac7"
}
