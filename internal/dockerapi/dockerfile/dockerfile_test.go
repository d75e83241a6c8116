package dockerfile

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func get(name string) string { return map[string]string{"A": "a b", "DIR": "/d"}[name] }

func TestRead(t *testing.T) {
	list, err := Read("# syntax=x\n# a comment\nfrom bb AS one\n\nRUN echo a && \\\n # inside\n\n  echo b\r\nCOPY --from=one --chown=1:2 /x  ./y\nCMD [\"a\", \"b\"]\n")
	if err != nil {
		t.Fatal(err)
	}
	want := []Instruction{
		{3, "FROM", map[string]string{}, "bb AS one"},
		{5, "RUN", map[string]string{}, "echo a &&   echo b"},
		{9, "COPY", map[string]string{"from": "one", "chown": "1:2"}, "/x  ./y"},
		{10, "CMD", map[string]string{}, `["a", "b"]`},
	}
	if diff := cmp.Diff(want, list); diff != "" {
		t.Error(diff)
	}
	for name, text := range map[string]string{
		"unknown":         "FROM a\nFUTURE x",
		"ONBUILD":         "FROM a\nONBUILD ADD http://x /",
		"a mount":         "FROM a\nRUN --mount=type=secret,id=x cat /run/secrets/x",
		"a network":       "FROM a\nRUN --network=host true",
		"security":        "FROM a\nRUN --security=insecure true",
		"chmod":           "FROM a\nCOPY --chmod=4755 a b",
		"a document":      "FROM a\nRUN <<EOF\nrm -rf /\nEOF",
		"a document -":    "FROM a\nCOPY <<-'EOF' /x\nEOF",
		"another escape":  "# escape=`\nFROM a",
		"no words":        "FROM",
		"a flag twice":    "FROM a\nCOPY --from=a --from=b x y",
		"a platform":      "FROM --platform=linux/arm64 a",
		"a zero byte":     "FROM a\x00",
		"not UTF-8":       "FROM \xff",
		"too many":        strings.Repeat("RUN x\n", maxInstructions+1),
		"too large":       strings.Repeat("#", MaxBytes+1),
		"ADD with a sum":  "FROM a\nADD --checksum=sha256:x http://x /",
		"ADD of git":      "FROM a\nADD --keep-git-dir=true x /",
		"copies of links": "FROM a\nCOPY --link a b",
	} {
		if list, err := Read(text); err == nil {
			t.Errorf("%s: read as %v", name, list)
		}
	}
}

func TestWords(t *testing.T) {
	for text, want := range map[string][]string{
		`a  b`: {"a", "b"}, `"a b" 'c $A'`: {"a b", "c $A"}, `$A x`: {"a b", "x"}, `${DIR}/y`: {"/d/y"}, `${NO:-n}${A:+s}${NO:+t}`: {"ns"},
		`a\ b \$A`: {"a b", "$A"}, `"\n\""`: {`\n"`}, `$ $1`: {"$", "$1"}, `["x", "$DIR"]`: {"x", "/d"},
	} {
		i := &Instruction{Name: "COPY", Rest: text}
		got, err := i.Words(get)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v %s", text, err, diff)
		}
	}
	for _, text := range []string{`"a`, `${A`, `${A#x}`, `${A:-$B}`, `${}`} {
		if got, err := (&Instruction{Rest: text}).Words(get); err == nil {
			t.Errorf("%s is read as %q", text, got)
		}
	}
}

func TestPairs(t *testing.T) {
	for text, want := range map[string]string{`A=1 B="2 3"`: "A=1;B=2 3;", `A 1 $DIR`: "A=1 /d;", `A=`: "A=;"} {
		names, values, err := (&Instruction{Name: "ENV", Rest: text}).Pairs(get)
		got := ""
		for _, n := range names {
			got += n + "=" + *values[n] + ";"
		}
		if err != nil || got != want {
			t.Errorf("%s: %q, %v", text, got, err)
		}
	}
	if _, _, err := (&Instruction{Name: "ENV", Rest: "A"}).Pairs(get); err == nil {
		t.Error("ENV without a value")
	}
	if _, values, err := (&Instruction{Name: "ARG", Rest: "A"}).Pairs(get); err != nil || values["A"] != nil {
		t.Errorf("ARG without a value: %v", err)
	}
}

// A Dockerfile of bounded size stands for words of bounded size, and is read in
// bounded time.
func TestWordsAreBounded(t *testing.T) {
	large := func(string) string { return strings.Repeat("x", 64<<10) }
	list := func(n int) string { return "[" + strings.Repeat(`"$A",`, n) + `"/"]` }
	for name, text := range map[string]string{
		"many words": strings.Repeat("a ", maxWords+1), "many words in a list": list(maxWords),
		"large words": strings.Repeat("$A ", 5), "large words in a list": list(5), "a large word": strings.Repeat("$A", 5),
	} {
		for _, i := range []*Instruction{{Name: "COPY", Rest: text}, {Name: "ENV", Rest: strings.ReplaceAll(text, "$A", "a=$A")}, {Name: "ENV", Rest: "a " + text}} {
			get := large
			if strings.HasPrefix(name, "many") {
				get = func(string) string { return "" }
			}
			if i.Name == "COPY" {
				if words, err := i.Words(get); err == nil {
					t.Errorf("%s: %d words", name, len(words))
				}
			} else if names, _, err := i.Pairs(get); err == nil && name != "many words in a list" { // which is one word there
				t.Errorf("%s: %d pairs", name, len(names))
			}
		}
	}
	if words, err := (&Instruction{Rest: strings.Repeat("$A ", 4)}).Words(large); err != nil || len(words) != 4 { // the control
		t.Error(err)
	}
	if list, err := Read("FROM a\nRUN " + strings.Repeat("a\\\n", MaxBytes/3-10)); err != nil || len(list) != 2 {
		t.Errorf("a line in many parts: %v", err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add("FROM a\nRUN --x=y a \\\n b\nENV A=${B:-c}")
	f.Fuzz(func(t *testing.T, text string) {
		list, err := Read(text)
		if err != nil {
			return
		}
		for _, i := range list {
			if i.Name == "" || i.Rest == "" || strings.HasPrefix(i.Rest, "--") || i.Line < 1 {
				t.Errorf("%+v", i)
			}
			_, _ = i.Words(get)
			_, _, _ = i.Pairs(get)
		}
	})
}
