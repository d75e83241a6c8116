package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"
	"testing"
	"time"
)

var (
	july  = release{version: "1.2.3", commit: "0123456789abcdef0123456789abcdef01234567", date: time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)}
	files = []artefact{{"bawn-1.2.3-darwin-arm64.tar.gz", strings.Repeat("a", 64)}, {"bawn-1.2.3-linux-amd64.tar.gz", strings.Repeat("b", 64)}, {"bawn_1.2.3-1_amd64.deb", strings.Repeat("c", 64)}}
	parts = built{goVersion: "go1.26.0", modules: []debug.Module{
		{Path: "example.org/a", Version: "v1.0.0", Sum: "h1:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="},
		{Path: "example.org/b/v2", Version: "v2.1.0", Sum: "h1:IAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="},
	}}
)

// TestFragments reads what the next changelog will be made of.
func TestFragments(t *testing.T) {
	all, err := fragments("../../changelog")
	if err != nil {
		t.Fatal(err)
	}
	for _, form := range []string{"markdown", "debian"} {
		var b bytes.Buffer
		if err := writeChangelog(&b, "0.1.0", "2026-07-01", form, "../.."); err != nil {
			t.Fatal(err)
		}
		for _, f := range all {
			if first := strings.Fields(f.title)[0]; !strings.Contains(b.String(), first) {
				t.Errorf("%s: the form %q lacks it", f.file, form)
			}
		}
	}
	for _, bad := range []string{"", "Feature", "Feature:", "Fix: a thing", "a title without a kind"} {
		if f, err := parseFragment("x", bad); err == nil {
			t.Errorf("%q is read as %+v", bad, f)
		}
	}
}

// TestMerged: fragments go to their kind in the section of their version.
func TestMerged(t *testing.T) {
	some := []fragment{{kind: "Bugfix", title: "b", text: "more\nof b"}, {kind: "Feature", title: "f"}}
	const old = "# Changelog\n\n## 1.1.0 - 2026-01-01\n\nWords.\n\n### New\n\n* n\n\n### Changed\n\n* c\n"
	const older = "\n## 1.0.0 - 2025-01-01\n\n### New\n\n* o\n"
	for name, tt := range map[string]struct {
		old, version string
		all          []fragment
		want         string
	}{
		"into the section":  {old + older, "1.1.0", some, strings.Replace(old, "* n\n", "* n\n* f\n", 1) + "\n### Mended\n\n* b\n\n  more\n  of b\n" + older},
		"a new section":     {old, "1.2.0", some[1:], "# Changelog\n\n## 1.2.0 - 2026-07-01\n\n### New\n\n* f\n" + strings.TrimPrefix(old, "# Changelog\n")},
		"the first section": {"# Changelog\n", "1.0.0", some[1:], "# Changelog\n\n## 1.0.0 - 2026-07-01\n\n### New\n\n* f\n"},
		"no fragments":      {old + older, "1.1.0", nil, old + older},
		"of no version":     {old, "1.2.0", nil, ""},
		"nothing at all":    {"# Changelog\n", "1.0.0", nil, ""},
		"an empty file":     {"", "1.0.0", some, ""},
	} {
		got, err := merged(tt.old, tt.version, "2026-07-01", tt.all)
		if got != tt.want || (err == nil) != (tt.want != "") {
			t.Errorf("%s: %v\n%s\nwant\n%s", name, err, got, tt.want)
		}
	}
}

// TestCollect: what was collected is in CHANGELOG.md once, and can be collected no more.
func TestCollect(t *testing.T) {
	tree := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(tree, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(tree, "changelog/unreleased"), 0o755); err != nil {
		t.Fatal(err)
	}
	write("CHANGELOG.md", "# Changelog\n\n## 1.0.0 - 2026-01-01\n")
	write("changelog/unreleased/x", "Feature: a thing\n")
	for range 2 {
		if err := collect("1.0.0", "2026-07-01", tree); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(filepath.Join(tree, "CHANGELOG.md"))
	if want := "# Changelog\n\n## 1.0.0 - 2026-01-01\n\n### New\n\n* a thing\n"; string(text) != want || err != nil {
		t.Errorf("%v: %q; want %q", err, text, want)
	}
	if left, err := fragments(filepath.Join(tree, "changelog")); len(left) != 0 || err != nil {
		t.Errorf("left: %v, %v", left, err)
	}
}

func TestDebianChangelog(t *testing.T) {
	var b bytes.Buffer
	long := strings.Repeat("word ", 40)
	if err := debianChangelog(&b, "0.1.0", "2026-07-01", "# C\n\n## 0.1.0 - x\n\n### Security\n\n* first\n\n### Mended\n\n* "+long+"\n\n## 0.0.1\n\n* old\n"); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	if !strings.HasPrefix(text, "bawn (0.1.0-1) stable; urgency=medium\n\n  * Security: first\n  * Mended: word") || strings.Contains(text, "old") {
		t.Errorf("%s", text)
	}
	if !strings.HasSuffix(text, "\n -- Bawn <bawn-dev@users.noreply.github.com>  Wed, 01 Jul 2026 00:00:00 +0000\n") {
		t.Errorf("%s", text)
	}
	if regexp.MustCompile(`(?m)^.{81,}$`).MatchString(text) {
		t.Errorf("a line is longer than 80 bytes:\n%s", text)
	}
}

func TestBill(t *testing.T) {
	var b struct {
		SPDXVersion string `json:"spdxVersion"`
		Created     struct {
			Created string `json:"created"`
		} `json:"creationInfo"`
		Packages []struct{ SPDXID, Name, VersionInfo string }
		Files    []struct {
			SPDXID, FileName string
			Checksums        []struct{ ChecksumValue string }
		}
		Relationships []struct{ SpdxElementID, RelationshipType, RelatedSpdxElement string }
	}
	if err := json.Unmarshal(document(bill(july, parts, files)), &b); err != nil {
		t.Fatal(err)
	}
	ids := map[string]bool{"SPDXRef-DOCUMENT": true}
	for _, p := range b.Packages {
		if ids[p.SPDXID] || p.Name == "" || p.VersionInfo == "" {
			t.Errorf("package %+v", p)
		}
		ids[p.SPDXID] = true
	}
	for i, f := range b.Files {
		if ids[f.SPDXID] || f.FileName != "./"+files[i].name || f.Checksums[0].ChecksumValue != files[i].sha256 {
			t.Errorf("file %+v", f)
		}
		ids[f.SPDXID] = true
	}
	for _, r := range b.Relationships {
		if !ids[r.SpdxElementID] || !ids[r.RelatedSpdxElement] {
			t.Errorf("relationship %+v names what is not there", r)
		}
	}
	if len(b.Packages) != 4 || len(b.Files) != 3 || len(b.Relationships) != 1+3+3 || b.SPDXVersion != "SPDX-2.3" || b.Created.Created != "2026-07-01T12:00:00Z" {
		t.Errorf("%+v", b)
	}
}

func TestProvenance(t *testing.T) {
	text := string(document(provenance(july, parts, files)))
	for _, want := range []string{
		`"_type": "https://in-toto.io/Statement/v1"`, `"sha256": "` + files[2].sha256 + `"`, `"gitCommit": "` + july.commit + `"`,
		`"uri": "pkg:golang/example.org/b/v2@v2.1.0"`, `"dirHash1": "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the statement lacks %s:\n%s", want, text)
		}
	}
}

// TestRecipes: a formula and an expression name each archive with its checksum; an
// archive that was not built has one that nothing matches.
func TestRecipes(t *testing.T) {
	for name, text := range map[string]string{"formula": homebrew(july, files), "expression": nixExpression(july, files)} {
		for target, sum := range map[string]string{"darwin-arm64": files[0].sha256, "linux-amd64": files[1].sha256, "linux-arm64": strings.Repeat("0", 64)} {
			want := regexp.MustCompile(regexp.QuoteMeta("/releases/download/v1.2.3/bawn-1.2.3-"+target+".tar.gz\"") + `;?\s+sha256 =? ?"` + sum)
			if !want.MatchString(text) {
				t.Errorf("the %s lacks %s:\n%s", name, target, text)
			}
		}
	}
}

func TestLicences(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"go/LICENSE": "Go's", "a/LICENSE.md": "of a", "a/NOTICE": "notice of a", "b b/COPYING": "of b", "c/README": "nothing"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	line := func(m string) string { return "example.org/" + m[:1] + " v1.0.0 " + filepath.Join(dir, m) + "\n" }
	var b strings.Builder
	if err := writeLicences(&b, strings.NewReader(line("a")+line("b b")), filepath.Join(dir, "go")); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Go's", "of a", "notice of a", "of b", "example.org/b v1.0.0: COPYING"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is missing:\n%s", want, b.String())
		}
	}
	for name, in := range map[string]string{"no licence": line("c"), "no module": "", "half a line": "example.org/a"} {
		if err := writeLicences(&b, strings.NewReader(in), filepath.Join(dir, "go")); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestDocuments writes them for this test's own program, and looks that the checksums
// cover them.
func TestDocuments(t *testing.T) {
	r, programs := july, t.TempDir()
	r.out = t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, filepath.Join(programs, "bawn")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(r.out, r.archive("linux-amd64")), []byte("an archive"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := writeDocuments(r, []string{programs}); err != nil {
		t.Fatal(err)
	}
	sums, err := os.ReadFile(filepath.Join(r.out, "SHA256SUMS"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"bawn-1.2.3-linux-amd64.tar.gz", "bawn-1.2.3.spdx.json", "bawn-1.2.3.provenance.json", "bawn.rb", "bawn.nix"} {
		if !regexp.MustCompile(`(?m)^[0-9a-f]{64}  ` + regexp.QuoteMeta(name) + `$`).Match(sums) {
			t.Errorf("no checksum of %s:\n%s", name, sums)
		}
	}
}
