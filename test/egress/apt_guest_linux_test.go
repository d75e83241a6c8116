package egress_test

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// aptOptions keep what apt reads and writes in the working directory, as
// somebody who is not root has to. Root would have apt become another user,
// whom a sandbox does not have.
const aptOptions = `Dir "$PWD/apt/";
Dir::State "state";
Dir::State::status "$PWD/apt/status";
Dir::Cache "cache";
Dir::Etc "etc";
Dir::Log "log";
APT::Architecture "amd64";
APT::Architectures "amd64";
APT::Sandbox::User "";
Acquire::Languages "none";
Acquire::Retries "0";
`

// TestApt updates from a repository and downloads a package of it over plain
// HTTP, with the default profile.
func TestApt(t *testing.T) {
	d := newAccount(t, "apt")
	host := at("deb", "*.debian.org")
	deb := d.deb(t)
	d.publish(t, host, "lab/pool/tiny_1.0_all.deb", deb)
	d.publish(t, host, "lab/dists/stable/main/binary-amd64/Packages", fmt.Sprintf("Package: tiny\nVersion: 1.0\nArchitecture: all\nMaintainer: Lab <lab@example.test>\nDescription: is tiny\n"+
		"Filename: pool/tiny_1.0_all.deb\nSize: %d\nSHA256: %x\n", len(deb), sha256.Sum256([]byte(deb))))
	put(t, "deb [trusted=yes] http://"+host+"/lab stable main\n", d.work, "apt/etc/sources.list")
	d.everywhere(t, "mkdir -p apt/state/lists/partial apt/cache/archives/partial apt/etc/apt.conf.d apt/etc/preferences.d apt/log && : > apt/status && cat > apt.conf <<END\n"+aptOptions+"END\n"+
		"export APT_CONFIG=$PWD/apt.conf; apt-get update; apt-get download tiny && dpkg-deb -x tiny_1.0_all.deb out && cat out/usr/share/tiny", "tiny works")
}

// deb makes a package.
func (d *account) deb(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(d.home, "tiny")
	put(t, "tiny works\n", dir, "usr/share/tiny")
	put(t, "Package: tiny\nVersion: 1.0\nArchitecture: all\nMaintainer: Lab <lab@example.test>\nDescription: is tiny\n", dir, "DEBIAN/control")
	if r := d.run(t, "dpkg-deb", "--root-owner-group", "--build", dir, dir+".deb"); r.code != 0 {
		t.Fatalf("dpkg-deb: %s%s", r.out, r.err)
	}
	text, err := os.ReadFile(dir + ".deb")
	check(t, err)
	return string(text)
}
