package egress_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn/internal/testenv"
)

// publish puts a file at a registry outside.
func (d *account) publish(t *testing.T, host, path, text string) {
	t.Helper()
	p := filepath.Join(d.lab, "registries", host, filepath.FromSlash(path))
	check(t, os.MkdirAll(filepath.Dir(p), 0o755))
	check(t, os.WriteFile(p, []byte(text), 0o644))
}

// packed makes a package of files, as a compressed tar or as a zip.
func packed(t *testing.T, asZip bool, files ...string) string {
	t.Helper()
	var b bytes.Buffer
	if asZip {
		z := zip.NewWriter(&b)
		for i := 0; i < len(files); i += 2 {
			w, err := z.Create(files[i])
			check(t, err)
			_, err = w.Write([]byte(files[i+1]))
			check(t, err)
		}
		check(t, z.Close())
		return b.String()
	}
	gz := gzip.NewWriter(&b)
	w := tar.NewWriter(gz)
	for i := 0; i < len(files); i += 2 {
		check(t, w.WriteHeader(&tar.Header{Name: files[i], Mode: 0o644, Size: int64(len(files[i+1])), Typeflag: tar.TypeReg}))
		_, err := w.Write([]byte(files[i+1]))
		check(t, err)
	}
	check(t, w.Close())
	check(t, gz.Close())
	return b.String()
}

// everywhere runs a line unsandboxed, in the default profile's network and in one
// that lacks the registry, and wants it to succeed in the first two.
func (d *account) everywhere(t *testing.T, line, want string) {
	t.Helper()
	dir := "cd $(mktemp -d) && cp -r " + d.work + "/. . && "
	for how, run := range map[string]func() result{
		"bare":  func() result { return d.sh(t, dir+line) },
		"guest": func() result { return d.inside(t, nil, dir+line) },
	} {
		if r := run(); !strings.Contains(r.out, want) || r.code != 0 {
			t.Errorf("%s: it ends with %d after %v and says\n%.1500s%.1500s", how, r.code, r.took, r.out, r.err)
		}
	}
	m := d.now(t)
	if r := d.run(t, d.bawn(t), "run", "--net", "none", "--", "/bin/sh", "-c", dir+line); r.code == 0 {
		t.Errorf("without a network it says %s", r.out)
	}
	if seen := d.since(t, m); len(seen) > 0 {
		t.Errorf("without a network %v is outside", seen)
	}
}

// TestNpm installs from a lock file, with the default profile.
func TestNpm(t *testing.T) {
	d := newAccount(t, "node")
	d.env = append(d.env, trusting)
	host := at("registry", "*.npmjs.org")
	tarball := packed(t, false, "package/package.json", `{"name":"tiny","version":"1.0.0","main":"index.js"}`, "package/index.js", "module.exports = 'tiny works'\n")
	sum := sha512.Sum512([]byte(tarball))
	url := "https://" + host + "/tiny/-/tiny-1.0.0.tgz"
	d.publish(t, host, "tiny/-/tiny-1.0.0.tgz", tarball)
	put(t, `{"name":"project","version":"1.0.0","dependencies":{"tiny":"1.0.0"}}`, d.work, "package.json")
	put(t, fmt.Sprintf(`{"name":"project","version":"1.0.0","lockfileVersion":3,"requires":true,"packages":{"":{"name":"project","version":"1.0.0","dependencies":{"tiny":"1.0.0"}},`+
		`"node_modules/tiny":{"version":"1.0.0","resolved":%q,"integrity":"sha512-%s"}}}`, url, base64.StdEncoding.EncodeToString(sum[:])), d.work, "package-lock.json")
	d.everywhere(t, "npm_config_cache=$PWD/.cache npm ci --fetch-retries=0 --no-audit --no-fund && node -p 'require(\"tiny\")'", "tiny works")
}

// TestPip installs a wheel, with the default profile.
func TestPip(t *testing.T) {
	d := newAccount(t, "pip")
	index, files := at("pypi", ".org"), at("files", "*.pythonhosted.org")
	wheel := packed(t, true, "tiny.py", "print('tiny works')\n",
		"tiny-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n",
		"tiny-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: lab\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
		"tiny-1.0.dist-info/RECORD", "tiny.py,,\ntiny-1.0.dist-info/METADATA,,\ntiny-1.0.dist-info/WHEEL,,\ntiny-1.0.dist-info/RECORD,,\n")
	d.publish(t, files, "packages/tiny-1.0-py3-none-any.whl", wheel)
	d.publish(t, index, "simple/tiny/index.html", fmt.Sprintf(`<a href="https://%s/packages/tiny-1.0-py3-none-any.whl#sha256=%x">tiny-1.0-py3-none-any.whl</a>`, files, sha256.Sum256([]byte(wheel))))
	d.everywhere(t, "PIP_CERT=${PIP_CERT:-/etc/ssl/certs/ca-certificates.crt} python3 -m pip install --no-cache-dir --disable-pip-version-check --retries 0 --target lib tiny && PYTHONPATH=lib python3 -c 'import tiny'", "tiny works")
}

// TestGoModules downloads a module, with the default profile.
func TestGoModules(t *testing.T) {
	d := newAccount(t, "go")
	host := at("proxy", "*.golang.org")
	const path = "example.test/tiny/@v/v1.0.0"
	mod := "module example.test/tiny\n\ngo 1.21\n"
	d.publish(t, host, path+".info", `{"Version":"v1.0.0","Time":"2026-01-01T00:00:00Z"}`)
	d.publish(t, host, path+".mod", mod)
	d.publish(t, host, path+".zip", packed(t, true, "example.test/tiny@v1.0.0/go.mod", mod, "example.test/tiny@v1.0.0/tiny.go", "package tiny\n"))
	put(t, "module project\n\ngo 1.21\n\nrequire example.test/tiny v1.0.0\n", d.work, "go.mod")
	d.everywhere(t, "export GOFLAGS=-modcacherw GOMODCACHE=$PWD/.mod GOCACHE=$PWD/.cache GOTOOLCHAIN=local GONOSUMDB=example.test GOPROXY=https://"+host+"; go mod download -x && ls .mod/example.test/tiny@v1.0.0", "tiny.go")
}

// TestPostgreSQL reaches a database by name, and no other.
func TestPostgreSQL(t *testing.T) {
	d := newAccount(t, "postgres")
	dir, err := testenv.PostgresDir()
	check(t, err)
	data, err := os.MkdirTemp(d.lab, "data-")
	check(t, err)
	t.Cleanup(func() { os.RemoveAll(data) })
	uid := os.Getuid()
	if uid == 0 { // PostgreSQL does not run as root
		uid = 65534
		check(t, os.Chown(data, uid, uid))
	}
	env := []string{"LC_ALL=C", "HOME=" + data, "PGDATA=" + data + "/db"}
	d.outside(t, order{Argv: []string{dir + "/initdb", "-A", "trust", "-U", "dev", "-N"}, Env: env, Dir: data, UID: uid, Wait: true})
	check(t, os.WriteFile(filepath.Join(data, "db/pg_hba.conf"), []byte("host all all all trust\n"), 0o600))
	server := d.outside(t, order{Argv: []string{dir + "/postgres", "-h", "93.184.215.23," + publicV6 + "23", "-k", data, "-F"}, Env: env, Dir: data, UID: uid})
	t.Cleanup(func() { d.kill(t, server.PID) })
	check(t, listening("db.test:5432"))
	query := "psql -X -At -h db.test -U dev -d postgres -c \"select 'answer ' || 6*7\""
	testenv.Until(t, "the database answers", func() bool { return strings.Contains(d.sh(t, query).out, "answer 42") })
	if r := d.inside(t, allow("db.test:5432"), query); !strings.Contains(r.out, "answer 42") {
		t.Errorf("the guest gets %s%s after %v", r.out, r.err, r.took)
	}
	m := d.now(t)
	if r := d.inside(t, allow("db.test", "allowed.test:5432"), query); strings.Contains(r.out, "answer") || r.took > soon {
		t.Errorf("without a rule it gets %s after %v", r.out, r.took)
	}
	d.nothingElse(t, m, attack{})
}
