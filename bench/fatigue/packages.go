package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// publish fills the registries with one package of each language, which is called
// tiny. code replaces parts of them.
func publish(dir string, code map[string]string) error {
	files := map[string]string{
		"js": "module.exports = (a, b) => a + b\n", "js-install": "", "py": "def add(a, b):\n    return a + b\n",
		"go": "// Package tiny adds.\npackage tiny\n\n// Add adds.\nfunc Add(a, b int) int { return a + b }\n",
	}
	maps.Copy(files, code)
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	return errors.Join(publishJS(dir, files), publishGo(dir, files), publishPython(dir, files))
}

func publishJS(dir string, files map[string]string) error {
	manifest := `"name":"tiny","version":"1.0.0","main":"index.js"`
	if files["js-install"] != "" {
		manifest += `,"scripts":{"postinstall":"node install.js"},"hasInstallScript":true`
	}
	tarball, err := tarred(map[string]string{"package/package.json": "{" + manifest + "}", "package/index.js": files["js"], "package/install.js": files["js-install"]})
	if err != nil {
		return err
	}
	sum := sha512.Sum512(tarball)
	about := fmt.Sprintf(`{"name":"tiny","dist-tags":{"latest":"1.0.0"},"versions":{"1.0.0":{%s,"dist":{"tarball":"https://%s/tiny/-/tiny-1.0.0.tgz","integrity":"sha512-%s"}}}}`,
		manifest, npm, base64.StdEncoding.EncodeToString(sum[:]))
	return errors.Join(put(about, dir, npm, "tiny/index.html"), put(string(tarball), dir, npm, "tiny/-/tiny-1.0.0.tgz"))
}

func publishGo(dir string, files map[string]string) error {
	const path, mod = "example.test/tiny", "module example.test/tiny\n\ngo 1.21\n"
	zipped, err := zipped(map[string]string{path + "@v1.0.0/go.mod": mod, path + "@v1.0.0/tiny.go": files["go"]})
	if err != nil {
		return err
	}
	const info = `{"Version":"v1.0.0","Time":"2026-01-01T00:00:00Z"}`
	at := filepath.Join(dir, goProxy, path, "@v")
	return errors.Join(put(info, at, "v1.0.0.info"), put(mod, at, "v1.0.0.mod"), put(string(zipped), at, "v1.0.0.zip"), put("v1.0.0\n", at, "list"), put(info, dir, goProxy, path, "@latest"))
}

func publishPython(dir string, files map[string]string) error {
	const about = "tiny-1.0.dist-info/"
	wheel, err := zipped(map[string]string{
		"tiny.py": files["py"], about + "METADATA": "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n",
		about + "WHEEL": "Wheel-Version: 1.0\nGenerator: bench\nRoot-Is-Purelib: true\nTag: py3-none-any\n", about + "RECORD": "",
	})
	if err != nil {
		return err
	}
	index := fmt.Sprintf(`<a href="https://%s/tiny-1.0-py3-none-any.whl#sha256=%x">tiny-1.0-py3-none-any.whl</a>`, pyFiles, sha256.Sum256(wheel))
	return errors.Join(put(string(wheel), dir, pyFiles, "tiny-1.0-py3-none-any.whl"), put(index, dir, pypi, "simple/tiny/index.html"))
}

// tarred makes a compressed tar.
func tarred(files map[string]string) ([]byte, error) {
	var b bytes.Buffer
	gz := gzip.NewWriter(&b)
	w := tar.NewWriter(gz)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(files[name])), Typeflag: tar.TypeReg}); err != nil {
			return nil, err
		}
		if _, err := w.Write([]byte(files[name])); err != nil {
			return nil, err
		}
	}
	err := errors.Join(w.Close(), gz.Close())
	return b.Bytes(), err
}

// zipped makes a zip.
func zipped(files map[string]string) ([]byte, error) {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		w, err := z.Create(name)
		if err == nil {
			_, err = w.Write([]byte(files[name]))
		}
		if err != nil {
			return nil, err
		}
	}
	err := z.Close()
	return b.Bytes(), err
}
