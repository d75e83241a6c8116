package git

import "strings"

// matchRepo matches whole paths of repositories.
func matchRepo(pattern, repo string) bool {
	return pattern != "" && repo != "" && matchSegments(strings.Split(pattern, "/"), strings.Split(repo, "/"))
}

// matchRef matches whole refs. A wildcard does not match "%": Gerrit reads the
// text after it as options ("refs/for/main%submit"), so a rule that means them
// spells them.
func matchRef(pattern, ref string) bool {
	if pattern == "" || ref == "" || strings.Contains(ref, "%") && pattern != ref {
		return false
	}
	return matchSegments(strings.Split(pattern, "/"), strings.Split(ref, "/"))
}

// matchSegments holds one row of what matches so far, so that no pattern takes
// more than len(pattern) × len(path) steps.
func matchSegments(pattern, path []string) bool {
	row := make([]bool, len(path)+1) // row[i]: the pattern so far matches path[:i]
	row[0] = true
	for _, p := range pattern {
		next := make([]bool, len(path)+1)
		if p == "**" {
			for i, reached := range row {
				next[i] = reached || i > 0 && next[i-1]
			}
			row = next
			continue
		}
		for i, segment := range path {
			next[i+1] = row[i] && matchSegment(p, segment)
		}
		row = next
	}
	return row[len(path)]
}

// matchSegment matches one segment, in which "*" stands for any characters.
func matchSegment(pattern, s string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == s
	}
	first, last := parts[0], parts[len(parts)-1]
	if len(s) < len(first)+len(last) || !strings.HasPrefix(s, first) || !strings.HasSuffix(s, last) {
		return false
	}
	s = s[len(first) : len(s)-len(last)]
	for _, p := range parts[1 : len(parts)-1] {
		_, after, ok := strings.Cut(s, p)
		if !ok {
			return false
		}
		s = after
	}
	return true
}
