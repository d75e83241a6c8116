package gitstore

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

// Differences lists the refs, HEADs and stashes in which two snapshots of a repository
// differ, ordered by name; From is the value in before. after is nil for the present,
// which is read from gitDir. Bawn's own refs don't count, nor git directories that only
// one of the snapshots has. It writes nothing and starts no git.
func Differences(gitDir string, before, after json.RawMessage) ([]RefChange, error) {
	then, err := readSnapshot(before)
	if err != nil {
		return nil, fmt.Errorf("the checkpoint: %w", err)
	}
	var now *snapshot
	if after == nil {
		now, err = takeSnapshot(gitDir)
	} else {
		now, err = readSnapshot(after)
	}
	if err != nil {
		return nil, fmt.Errorf("compare %q with a checkpoint: %w", gitDir, err)
	}
	var list []RefChange
	for _, t := range then.Units {
		if n := now.unitOf(t); n != nil {
			list = append(list, t.differences(n)...)
		}
	}
	return list, nil
}

// differences compares one git directory.
func (u *unitState) differences(now *unitState) (list []RefChange) {
	at := ""
	if u.Dir != "." || u.Tree {
		at = path.Join(u.Dir, u.Rel)
	}
	add := func(name, from, to string) {
		if from != to {
			list = append(list, RefChange{Name: path.Join(at, name), From: from, To: to})
		}
	}
	add("HEAD", u.Head, now.Head)
	if u.Tree {
		return list // its refs are the repository's
	}
	names := maps.Clone(u.Refs)
	maps.Copy(names, now.Refs)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if name != stashRef && !strings.HasPrefix(name, ownRefs) {
			add(name, u.Refs[name], now.Refs[name])
		}
	}
	if old, new := u.stack(), now.stack(); !slices.Equal(stackIDs(old), stackIDs(new)) {
		list = append(list, RefChange{Name: path.Join(at, stashRef), From: stackWords(old), To: stackWords(new)})
	}
	return list
}

// stackWords says how many a stack has and which is on top, or is "" for an empty one.
func stackWords(stack []string) string {
	if len(stack) == 0 {
		return ""
	}
	ids := stackIDs(stack)
	return fmt.Sprintf("%d, the newest %.10s", len(ids), ids[len(ids)-1])
}
