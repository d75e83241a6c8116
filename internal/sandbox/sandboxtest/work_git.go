package sandboxtest

import (
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// gitNote begins what "bawn run" says of git on standard error.
const gitNote = "bawn: git: "

// madeNote is the one of a repository that the guest has made, of several at most
// the first.
var madeNote = regexp.MustCompile(`^bawn: git: the session has made a repository at \$WORK/(.+); "bawn git keep \$WORK/(.+)" makes it yours(; and \d+ more: see "bawn git")?\n$`)

// splitNotes takes Bawn's notes about git out of standard error.
func splitNotes(stderr string) (rest string, notes []string) {
	var b strings.Builder // a piece writes 100,000 lines
	for line := range strings.Lines(stderr) {
		if strings.HasPrefix(line, gitNote) {
			notes = append(notes, line)
			continue
		}
		b.WriteString(line)
	}
	return b.String(), notes
}

// belowGit reports whether a path lies in a git directory: a guest has its own.
func belowGit(path string) bool {
	return slices.Contains(strings.Split(filepath.Dir(path), "/"), ".git")
}

// questions are what is asked of every repository. The reflog and the
// configuration are not among them: they stay inside.
var questions = map[string]string{
	"HEAD":      `git symbolic-ref -q HEAD || git rev-parse HEAD`,
	"refs":      `git for-each-ref --format='%(refname) %(objectname)' refs/heads refs/tags refs/notes refs/stash`,
	"the stash": `git rev-parse -q --verify refs/stash >/dev/null && git log -g --format='%H %gs' refs/stash`,
	"the index": `git ls-files -s`,
	"status":    `git status --porcelain`,
	"fsck":      `git fsck --strict --no-dangling --no-progress`,
}

// gitSays asks the repositories of a tree from outside.
func gitSays(dir, shelf string, tree map[string]node) map[string]string {
	says := map[string]string{}
	for path := range tree {
		if filepath.Base(path) != ".git" || belowGit(path) {
			continue
		}
		at := filepath.Join(dir, filepath.Dir(path))
		for what, ask := range questions {
			out, errs, code := Unsandboxed(at, nil, "sh", "-c", workPrologue+ask, "sh", shelf)
			text := strings.ReplaceAll(out+errs, dir, "$WORK")
			says[path+": "+what] = text
			if what == "fsck" && (code != 0 || text != "") {
				says[path+": "+what] = fmt.Sprintf("%d: %s", code, text)
			}
		}
	}
	return says
}

// diffGit says what git says otherwise, and which of Bawn's notes should or should
// not be there.
func (p *workPiece) diffGit(want, got outcome) (diffs []string) {
	keys := slices.Concat(slices.Collect(maps.Keys(want.git)), slices.Collect(maps.Keys(got.git)))
	slices.Sort(keys)
	for _, key := range slices.Compact(keys) {
		if (p.inside == "" || strings.HasSuffix(key, ": fsck")) && want.git[key] != got.git[key] {
			diffs = append(diffs, diffText(key, want.git[key], got.git[key]))
		}
	}
	if p.inside != "" {
		// What comes before may be published or not: the guest was that quick.
		if len(got.notes) == 0 && !maps.Equal(want.git, got.git) {
			diffs = append(diffs, "nobody is told that something stays inside: "+p.inside)
		}
		return diffs
	}
	for _, note := range got.notes {
		m := madeNote.FindStringSubmatch(note)
		if m == nil || m[1] != m[2] || len(got.notes) > 1 || !madeInBoth(want, got, m[1]) {
			diffs = append(diffs, fmt.Sprintf("standard error has %q", note))
		}
	}
	return diffs
}

// madeInBoth reports whether a repository was really made.
func madeInBoth(want, got outcome, path string) bool {
	_, bare := want.tree[path]
	_, guest := got.tree[path]
	return bare && guest && filepath.Base(path) == ".git"
}
