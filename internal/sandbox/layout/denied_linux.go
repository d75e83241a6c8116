package layout

import "os"

// List reads a directory.
func List(dir string) ([]Listed, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	entries, err := f.ReadDir(-1)
	list := make([]Listed, len(entries))
	for i, e := range entries {
		list[i] = Listed{Name: e.Name(), Dir: e.IsDir(), Link: e.Type()&os.ModeSymlink != 0}
	}
	return list, err
}
