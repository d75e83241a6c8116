package gitstore

import (
	"context"
	"path"
	"slices"
)

// looseModules are git directories of submodules without a work tree, as after "git mv" or
// "git rm", in which something was committed. They are made links from nowhere.
func (s *Store) looseModules(ctx context.Context, linked []madeLink) (list []madeLink) {
	if s.Repo.Common == "" {
		return nil
	}
	var walk func(dir string, depth int)
	walk = func(dir string, depth int) {
		entries, err := readDir(s.Units[0].private, dir)
		if err != nil || depth > maxDepth {
			return // the directory is missing, or the guest has made it unreadable
		}
		for _, e := range entries[:min(len(entries), maxUnits)] {
			at := path.Join(dir, e.Name())
			if !e.IsDir() || len(list) >= maxUnits {
				continue
			}
			if !s.isPrivateRepository(at) {
				walk(at, depth+1)
				continue
			}
			is := func(l madeLink) bool { return l.to == at }
			if s.unitAt(at) == nil && !slices.ContainsFunc(linked, is) && s.hasOwnCommits(ctx, at) {
				list = append(list, madeLink{to: at})
			}
			walk(path.Join(at, "modules"), depth+1)
		}
	}
	walk("modules", 0)
	return list
}

// hasOwnCommits reports whether a submodule has commits that no branch of a remote has.
func (s *Store) hasOwnCommits(ctx context.Context, private string) bool {
	out := &bounded{limit: maxSmall}
	err := s.read(ctx, &unit{Private: private, Rel: "."}, nil, out, "rev-list", "-n", "1", "--exclude=refs/remotes/*", "--exclude=refs/tags/*", "--all", "--not", "--remotes")
	return err != nil || out.Len() > 0
}
