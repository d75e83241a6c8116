package picture

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestPictures: what README.md shows is small, whole, and has nothing of the machine that
// made it.
func TestPictures(t *testing.T) {
	files, err := filepath.Glob("../../../docs/pictures/*")
	if err != nil || len(files) != 3 {
		t.Fatalf("docs/pictures has %q, %v; want a cast and two pictures", files, err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil || len(text) > 150_000 || len(text) < 1000 {
			t.Errorf("%s has %d bytes, %v; want 1000 to 150,000", name, len(text), err)
		}
		if m := regexp.MustCompile(`/(tmp|var/tmp|work|root)/`).Find(text); m != nil && filepath.Ext(name) != ".png" {
			t.Errorf("%s names %q", name, m)
		}
		switch filepath.Ext(name) {
		case ".svg":
			err = wellFormed(string(text))
		case ".png":
			_, err = png.Decode(strings.NewReader(string(text)))
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func wellFormed(text string) error {
	for d := xml.NewDecoder(strings.NewReader(text)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// TestSVG: each screen is a frame, with its colours, and what a terminal shows is text.
func TestSVG(t *testing.T) {
	c := &Cast{Width: 20, Height: 3, Events: []Event{
		{0, "$ "}, {time.Second, "echo '<b>'\r\n"}, {time.Second + time.Millisecond, "\x1b[31m<b>\x1b[0m & more\r\n"}, {5 * time.Second, "\x1b[2J\x1b[Hcleared"},
	}}
	text := c.SVG("a <title>")
	if err := wellFormed(text); err != nil {
		t.Fatalf("%v:\n%s", err, text)
	}
	for _, want := range []string{"a &lt;title&gt;", ">&lt;b&gt;<", `fill="` + palette[1] + `"`, "&amp; more", ">cleared<", "11.122%{", "55.556%{"} {
		if !strings.Contains(text, want) {
			t.Errorf("the picture lacks %q:\n%s", want, text)
		}
	}
	if n := len(c.film().frames); n != 3 {
		t.Errorf("%d frames, want 3", n)
	}
	if got := (&Cast{}).SVG("x"); got != "" {
		t.Errorf("nothing is drawn as %q", got)
	}
}

// TestCast: pauses are shortened, and what follows keeps its distance.
func TestCast(t *testing.T) {
	c := &Cast{Width: 80, Height: 24, Events: []Event{{0, "a"}, {10 * time.Second, "b"}, {10500 * time.Millisecond, "\x1b[1m\"\r\n"}}}
	c.Shorten(2 * time.Second)
	var b strings.Builder
	if err := c.Write(&b, "t"); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	if len(lines) != 4 || lines[2] != `[2.000,"o","b"]` || lines[3] != `[2.500,"o","\u001b[1m\"\r\n"]` {
		t.Errorf("%q", lines)
	}
	var head struct{ Version, Width, Height int }
	if err := json.Unmarshal([]byte(lines[0]), &head); err != nil || head.Version != 2 || head.Width != 80 {
		t.Errorf("%+v, %v", head, err)
	}
}
