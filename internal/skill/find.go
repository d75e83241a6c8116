package skill

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Find lists what lies at places, with digests, in the order of the places. A
// place that does not exist has nothing; what can't be read, or is not what
// stands in such a place, is an item with a Fault.
func Find(places []Place) []Item {
	var items []Item
	for _, p := range places {
		if len(items) >= MaxItems {
			break
		}
		items = append(items, find(p)...)
	}
	return items
}

func find(p Place) []Item {
	info, err := os.Lstat(p.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, errNotDir):
		return nil
	case err != nil:
		return []Item{faulty(p, p.Path, err)}
	case p.Kind == Instructions && info.Mode().IsRegular():
		return []Item{Scan(p.Kind, p.Path, nil)}
	case info.Mode()&fs.ModeSymlink != 0:
		return []Item{faulty(p, p.Path, errLink)}
	case !info.IsDir():
		return []Item{faulty(p, p.Path, fmt.Errorf("it is %s; want a directory", describe(info.Mode())))}
	}
	return list(p)
}

var errLink = errors.New("a link, which leads to what may change unseen; put the files themselves there")

// list reads a directory of items.
func list(p Place) []Item {
	entries, err := os.ReadDir(p.Path)
	if err == nil && len(entries) > MaxItems {
		err = fmt.Errorf("%d entries; want at most %d", len(entries), MaxItems)
	}
	if err != nil {
		return []Item{faulty(p, p.Path, err)}
	}
	var items []Item
	for _, e := range entries {
		path := filepath.Join(p.Path, e.Name())
		switch {
		case e.Type()&fs.ModeSymlink != 0:
			items = append(items, faulty(p, path, errLink))
		case e.IsDir(), Text(e.Name()):
			items = append(items, Scan(p.Kind, path, nil))
		}
	}
	return items
}

// Text reports whether a file of this name is a text that steers an agent, and
// not something that lies beside it.
func Text(name string) bool {
	switch strings.ToLower(filepath.Ext(name)) {
	case ".md", ".mdx", ".markdown", ".mdc", ".toml", ".yaml", ".yml":
		return true
	}
	return false
}

// Scan returns the one item at a path, with its digest. visit is called with
// each file that went into it, and may be nil; its error becomes the item's
// Fault.
func Scan(k Kind, path string, visit func(File) error) Item {
	i := Item{Kind: k, Name: NameOf(path), Path: path}
	d := newDigest(i.Kind, i.Name)
	err := Walk(path, func(f File) error {
		d.add(f)
		if visit == nil {
			return nil
		}
		return visit(f)
	})
	if err != nil {
		return faulty(Place{Kind: k}, path, err)
	}
	i.Digest, i.Files = d.sum(), d.files
	return i
}

func faulty(p Place, path string, err error) Item {
	i := Item{Kind: p.Kind, Name: NameOf(path), Path: path}
	var fault *Fault
	var at *fs.PathError
	switch {
	case errors.As(err, &fault):
	case errors.As(err, &at):
		fault = &Fault{File: path, Problem: at.Err.Error()}
	default:
		fault = &Fault{File: path, Problem: err.Error()}
	}
	i.Fault = fault
	return i
}

// NameOf is a folder's name, or a file's without the end that says it is a text.
func NameOf(path string) string {
	name := filepath.Base(path)
	if Text(name) {
		return strings.TrimSuffix(name, filepath.Ext(name))
	}
	return name
}

func describe(m fs.FileMode) string {
	switch {
	case m.IsDir():
		return "a directory"
	case m&fs.ModeSymlink != 0:
		return "a link"
	case m.IsRegular():
		return "a file"
	}
	return "neither a file nor a directory"
}
