package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// An effect is something that is looked for from outside of the session:
//
//	file NAME REGEXP       a file of the project
//	home NAME REGEXP       a file below the home directory
//	gone NAME              no file of the project
//	lost NAME              no file below the home directory
//	commit REGEXP          a commit's subject in the project's branch
//	remote REF REGEXP      a commit's subject in the forge's repository
//	request REGEXP         a request that came to a server outside: METHOD HOST/PATH BODY
type effect struct {
	sort, name string
	want       *regexp.Regexp
}

// words says how many words of an effect stand before its expression.
var words = map[string]int{"file": 2, "home": 2, "gone": 2, "lost": 2, "commit": 1, "remote": 2, "request": 1}

func parseEffect(text string) (e effect, err error) {
	fields := strings.Fields(text)
	n := 0
	if len(fields) > 0 {
		n = words[fields[0]]
	}
	if n == 0 || len(fields) < n {
		return e, fmt.Errorf("effect %q: want one of file, home, gone, lost, commit, remote, request", text)
	}
	if e.sort = fields[0]; n == 2 {
		e.name = fields[1]
	}
	e.want, err = regexp.Compile(`(?ms)` + strings.Join(fields[n:], " "))
	return e, err
}

// happened reports whether it is there.
func (y *account) happened(text string) bool {
	e, err := parseEffect(text)
	if err != nil {
		return false
	}
	switch e.sort {
	case "file":
		return matches(filepath.Join(y.work, e.name), e.want)
	case "home":
		return matches(filepath.Join(y.home, e.name), e.want)
	case "gone":
		return absent(filepath.Join(y.work, e.name))
	case "lost":
		return absent(filepath.Join(y.home, e.name))
	case "commit":
		return e.want.MatchString(y.output("git", "log", "--format=%s"))
	case "remote":
		return e.want.MatchString(y.output("git", "-C", y.remote, "log", "--format=%s", e.name))
	}
	return slices.ContainsFunc(y.requests(), e.want.MatchString)
}

func absent(file string) bool {
	_, err := os.Lstat(file)
	return errors.Is(err, fs.ErrNotExist)
}

func matches(file string, want *regexp.Regexp) bool {
	text, err := os.ReadFile(file)
	return err == nil && want.Match(text)
}

// missing are those of effects that are not there.
func (y *account) missing(effects []string) []string {
	return slices.DeleteFunc(slices.Clone(effects), y.happened)
}
