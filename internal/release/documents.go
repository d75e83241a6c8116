package main

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// home is where the project is: its name in documents, and where releases are had.
const home = "https://github.com/bawn-dev/bawn"

// A release is what is written about.
type release struct {
	version, commit, out string
	date                 time.Time
}

// sourceURI names the source, as package URLs do.
func (r release) sourceURI() string {
	if r.commit == "none" {
		return "git+" + home
	}
	return "git+" + home + "@" + r.commit
}

// An artefact is a file of the release.
type artefact struct{ name, sha256 string }

// built is what the programs say of how they were made.
type built struct {
	goVersion string
	modules   []debug.Module // sorted by path, each once
}

// writeDocuments writes what accompanies the archives and packages. The checksums come
// last and cover the other documents, too.
func writeDocuments(r release, programs []string) error {
	files, err := artefacts(r.out)
	if err != nil {
		return err
	}
	b, err := inspect(programs)
	if err != nil {
		return err
	}
	formula, nix := homebrew(r, files), nixExpression(r, files)
	for name, text := range map[string][]byte{
		"bawn-" + r.version + ".spdx.json":       document(bill(r, b, files)),
		"bawn-" + r.version + ".provenance.json": document(provenance(r, b, files)),
		"bawn.rb":                                []byte(formula),
		"bawn.nix":                               []byte(nix),
	} {
		if err := os.WriteFile(filepath.Join(r.out, name), text, 0o644); err != nil {
			return err
		}
	}
	if files, err = artefacts(r.out); err != nil {
		return err
	}
	var sums strings.Builder
	for _, f := range files {
		fmt.Fprintf(&sums, "%s  %s\n", f.sha256, f.name)
	}
	return os.WriteFile(filepath.Join(r.out, "SHA256SUMS"), []byte(sums.String()), 0o644)
}

// artefacts returns the files of a directory, sorted by name.
func artefacts(dir string) ([]artefact, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var out []artefact
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256(text)
		out = append(out, artefact{e.Name(), hex.EncodeToString(sum[:])})
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%q is empty", dir)
	}
	return out, nil
}

// inspect reads what "go version -m" prints of all programs in directories.
func inspect(dirs []string) (built, error) {
	out, modules := built{}, map[string]debug.Module{}
	for _, dir := range dirs {
		programs, err := filepath.Glob(filepath.Join(dir, "*"))
		if err != nil || len(programs) == 0 {
			return built{}, fmt.Errorf("no program in %q: %w", dir, err)
		}
		for _, p := range programs {
			info, err := buildinfo.ReadFile(p)
			if err != nil {
				return built{}, err
			}
			if out.goVersion != "" && out.goVersion != info.GoVersion {
				return built{}, fmt.Errorf("%q was built by %s, others by %s", p, info.GoVersion, out.goVersion)
			}
			out.goVersion = info.GoVersion
			for _, m := range info.Deps {
				modules[m.Path] = *m
			}
		}
	}
	for _, path := range slices.Sorted(maps.Keys(modules)) {
		out.modules = append(out.modules, modules[path])
	}
	return out, nil
}

// document is a value as JSON, with a newline at its end.
func document(v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		panic("BUG(bawn): " + err.Error()) // strings, lists and maps
	}
	return b.Bytes()
}

// modulePURL is the package URL of a module.
func modulePURL(m debug.Module) string { return "pkg:golang/" + m.Path + "@" + m.Version }
