package policy

import (
	"embed"
	"fmt"
	"strings"
	"sync"
)

//go:embed data/*.txt data/danger/*.txt
var files embed.FS

// An entry is one line of a data file, split at " | ".
type entry struct {
	file   string
	line   int
	fields []string
}

func (e entry) errorf(format string, args ...any) error {
	return fmt.Errorf("%s:%d: %s", e.file, e.line, fmt.Sprintf(format, args...))
}

// list splits a field at " ;; ".
func (e entry) list(i int) []string {
	if i >= len(e.fields) || e.fields[i] == "" || e.fields[i] == "-" {
		return nil
	}
	return strings.Split(e.fields[i], " ;; ")
}

// entries reads a data file: one entry a line, "#" begins a comment line.
func entries(file, data string) (out []entry) {
	n := 0
	for text := range strings.Lines(data) {
		n++
		text = strings.TrimSpace(text)
		if text == "" || text[0] == '#' {
			continue
		}
		fields := strings.Split(text, " | ")
		for i := range fields {
			fields[i] = strings.TrimSpace(fields[i])
		}
		out = append(out, entry{file, n, fields})
	}
	return out
}

// embedded reads a data file.
func embedded(name string) []entry {
	return entries(name, string(must(files.ReadFile(name))))
}

// embeddedDir reads all data files of a directory.
func embeddedDir(dir string) (out []entry) {
	for _, f := range must(files.ReadDir(dir)) {
		out = append(out, embedded(dir+"/"+f.Name())...)
	}
	return out
}

// must makes a panic of an error in embedded data, which tests load.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// builtin is what the embedded data say, read when it is first needed.
var builtin = sync.OnceValue(func() *knowledge {
	return &knowledge{
		dangers:   must(parseDangers(embeddedDir("data/danger"))),
		protected: must(parseProtected(embedded("data/protected.txt"))),
		environ:   must(parseEnviron(embedded("data/env.txt"))),
		secrets:   parseNames(embedded("data/secretvars.txt")),
	}
})

// knowledge is what the data files say, ready to be asked.
type knowledge struct {
	dangers   *dangers
	protected index[protection]
	environ   []environRule
	secrets   []string
}

func parseNames(list []entry) (out []string) {
	for _, e := range list {
		out = append(out, e.fields[0])
	}
	return out
}
