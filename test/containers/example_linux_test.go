package containers

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bawn-dev/bawn/internal/testenv"
)

// pack makes an image of this machine's PostgreSQL: $1 is a scratch directory, $2 that of
// its programs, $3 the image's name. The server's user is 70.
const pack = `set -e
mkdir -p "$1/bin" "$1/etc" "$1/tmp" "$1/data" && chmod 1777 "$1/tmp" && chown 70:70 "$1/data" && chmod 700 "$1/data"
cp "$(command -v busybox)" "$1/bin/sh"
printf 'root:x:0:0::/:/bin/sh\npostgres:x:70:70::/data:/bin/sh\n' >"$1/etc/passwd"
printf 'root:x:0:\npostgres:x:70:\n' >"$1/etc/group"
printf '%s\n' '"$0"/initdb -D /data -U postgres --auth=trust --no-locale -E UTF8 >/dev/null' \
	'exec "$0"/postgres -D /data -c listen_addresses="*" -c unix_socket_directories=/tmp' >"$1/start"
version=$(dirname "$2")
{ echo "$version"; echo "/usr/share/postgresql/$(basename "$version")"; echo /usr/share/zoneinfo
ldd "$2/postgres" "$2/initdb" "$version"/lib/*.so | awk '/=> \// {print $3} /^\t\// {print $1}' | sort -u; } |
	tar -C / -h --exclude='*/bitcode' -T - -cf - 2>/dev/null | tar -C "$1" -xf -
tar -C "$1" -cf - . | docker import --change 'USER 70' --change "CMD [\"/bin/sh\", \"-c\", \". /start\", \"$2\"]" - "$3" >/dev/null`

// TestDatabaseExample: examples/database asks a database in a container, and nothing is
// left of it.
func TestDatabaseExample(t *testing.T) {
	testenv.Whole(t)
	testenv.Need(t, "docker-clients", "postgres")
	programs, err := testenv.PostgresDir()
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t)
	const image = "bawn-test/postgres:1"
	make := exec.Command("sh", "-c", pack, "sh", filepath.Join(t.TempDir(), "image"), programs, image)
	make.Env = w.environ
	if out, err := make.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	cmd := exec.Command("../../examples/database/run")
	cmd.Env = append(w.environ, "BAWN_DB_IMAGE="+image)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	readme, readErr := os.ReadFile("../../examples/database/README.md")
	if err != nil || readErr != nil || !strings.Contains(string(readme), "$ examples/database/run\n"+string(out)+"```") {
		t.Errorf("%v, %v: README.md does not show this output:\n%s", err, readErr, out)
	}
}
