package egress_test

import (
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/bawn-dev/bawn/internal/testenv"
)

// tinyPackage publishes a package of npm's at a host, with its document.
func (d *account) tinyPackage(t *testing.T, host string) {
	t.Helper()
	tarball := packed(t, false, "package/package.json", `{"name":"tiny","version":"1.0.0","main":"index.js"}`, "package/index.js", "module.exports = 'tiny works'\n")
	sum := sha512.Sum512([]byte(tarball))
	d.publish(t, host, "tiny/-/tiny-1.0.0.tgz", tarball)
	d.publish(t, host, "tiny/index.html", fmt.Sprintf(`{"name":"tiny","dist-tags":{"latest":"1.0.0"},"versions":{"1.0.0":{"name":"tiny","version":"1.0.0","dist":`+
		`{"tarball":"https://%s/tiny/-/tiny-1.0.0.tgz","integrity":"sha512-%s","shasum":"%x"}}}}`, host, base64.StdEncoding.EncodeToString(sum[:]), sha1.Sum([]byte(tarball))))
	put(t, `{"name":"project","version":"1.0.0","dependencies":{"tiny":"1.0.0"}}`, d.work, "package.json")
}

// installed is the file of a program, links resolved.
func installed(t *testing.T, name string) string {
	t.Helper()
	p, err := exec.LookPath(testenv.Manager(name))
	check(t, err)
	p, err = filepath.EvalSymlinks(p)
	check(t, err)
	return p
}

// TestPnpm installs with the default profile.
func TestPnpm(t *testing.T) {
	testenv.Whole(t) // TestNpm is the representative
	d := newAccount(t, "node", "pnpm")
	d.env = append(d.env, trusting)
	d.tinyPackage(t, at("registry", "*.npmjs.org"))
	d.everywhere(t, "export XDG_CACHE_HOME=$PWD/.cache XDG_DATA_HOME=$PWD/.data XDG_STATE_HOME=$PWD/.state; node "+installed(t, "pnpm")+" install --store-dir $PWD/.store --fetch-retries 0 && node -p 'require(\"tiny\")'", "tiny works")
}

// TestYarn installs with the default profile.
func TestYarn(t *testing.T) {
	testenv.Whole(t) // TestNpm is the representative
	d := newAccount(t, "node", "yarn")
	d.env = append(d.env, trusting)
	d.tinyPackage(t, at("registry", "*.yarnpkg.com"))
	d.everywhere(t, "node "+installed(t, "yarn")+" install --non-interactive --no-progress --cache-folder $PWD/.cache && node -p 'require(\"tiny\")'", "tiny works")
}

// TestCargo fetches a crate from the index, with the default profile.
func TestCargo(t *testing.T) {
	d := newAccount(t, "cargo")
	if home, err := os.UserHomeDir(); err == nil {
		d.env = append(d.env, "RUSTUP_HOME="+home+"/.rustup", "RUSTUP_TOOLCHAIN=stable")
	}
	index, files := at("index", "*.crates.io"), at("static", "*.crates.io")
	crate := packed(t, false, "tiny-1.0.0/Cargo.toml", "[package]\nname = \"tiny\"\nversion = \"1.0.0\"\nedition = \"2021\"\n", "tiny-1.0.0/src/lib.rs", "")
	d.publish(t, index, "config.json", `{"dl":"https://`+files+`/crates/{crate}/{crate}-{version}.crate"}`)
	d.publish(t, index, "ti/ny/tiny", fmt.Sprintf(`{"name":"tiny","vers":"1.0.0","deps":[],"cksum":"%x","features":{},"yanked":false}`+"\n", sha256.Sum256([]byte(crate))))
	d.publish(t, files, "crates/tiny/tiny-1.0.0.crate", crate)
	put(t, "[package]\nname = \"project\"\nversion = \"1.0.0\"\nedition = \"2021\"\n\n[dependencies]\ntiny = \"1.0.0\"\n", d.work, "Cargo.toml")
	put(t, "", d.work, "src", "lib.rs")
	cargo, err := exec.LookPath("cargo") // its links say what it does, where rustup has made them
	check(t, err)
	d.everywhere(t, "export PATH='"+filepath.Dir(cargo)+"':$PATH CARGO_HOME=$PWD/.cargo CARGO_NET_RETRY=0; '"+cargo+"' fetch && ls .cargo/registry/src/*/tiny-1.0.0", "Cargo.toml")
}

// TestMaven reads the parent of a project, with the default profile.
func TestMaven(t *testing.T) {
	testenv.Whole(t) // TestNpm is the representative
	d := newAccount(t, "java", "maven")
	host := at("repo", "*.maven.apache.org")
	const model = `<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>`
	parent := model + `<groupId>test.example</groupId><artifactId>tiny</artifactId><version>1.0</version><packaging>pom</packaging></project>`
	d.publish(t, host, "maven2/test/example/tiny/1.0/tiny-1.0.pom", parent)
	d.publish(t, host, "maven2/test/example/tiny/1.0/tiny-1.0.pom.sha1", fmt.Sprintf("%x", sha1.Sum([]byte(parent))))
	put(t, model+`<parent><groupId>test.example</groupId><artifactId>tiny</artifactId><version>1.0</version><relativePath/></parent><artifactId>project</artifactId><packaging>pom</packaging></project>`, d.work, "pom.xml")
	bare := "[ -n \"$BAWN_SESSION\" ] || export MAVEN_OPTS='" + d.javaStore(t) + "'; " // in a session Bawn says whom Java trusts
	d.everywhere(t, bare+"mvn -B -ntp -N -Dmaven.repo.local=$PWD/.m2 validate && ls .m2/test/example/tiny/1.0", "tiny-1.0.pom")
}
