package relay

import (
	_ "embed"
	"fmt"
	"html"
	"net"
	"os"
	"strconv"
	"strings"
)

// firstSocket is the number of the first descriptor that systemd passes
// (sd_listen_fds(3)).
const firstSocket = 3

// activated returns the sockets that systemd has made, by the names of their
// units' FileDescriptorName.
func activated(environ []string) (map[string]net.Listener, error) {
	if variable(environ, "LISTEN_PID") != strconv.Itoa(os.Getpid()) {
		return nil, nil
	}
	n, err := strconv.Atoi(variable(environ, "LISTEN_FDS"))
	if err != nil || n < 0 || n > 16 {
		return nil, fmt.Errorf("LISTEN_FDS is %q; want a small number", variable(environ, "LISTEN_FDS"))
	}
	names := strings.Split(variable(environ, "LISTEN_FDNAMES"), ":")
	socks := map[string]net.Listener{}
	for i := range n {
		f := os.NewFile(uintptr(firstSocket+i), "socket")
		l, err := net.FileListener(f) // a copy
		f.Close()
		if err != nil {
			return nil, fmt.Errorf("socket %d of systemd's: %w", i, err)
		}
		if i < len(names) {
			socks[names[i]] = l
		}
	}
	return socks, nil
}

// notify tells systemd (sd_notify(3)); without systemd it does nothing.
func notify(environ []string, state string) {
	path := variable(environ, "NOTIFY_SOCKET")
	if path == "" {
		return
	}
	conn, err := net.Dial("unixgram", path) // "@" begins an abstract name for Go, too
	if err != nil {
		return
	}
	defer conn.Close()
	_, _ = conn.Write([]byte(state)) // systemd has its own time limit
}

func variable(environ []string, name string) string {
	for _, kv := range environ {
		if value, ok := strings.CutPrefix(kv, name+"="); ok {
			return value
		}
	}
	return ""
}

//go:embed units.txt
var units string

// Units returns the files by which systemd or launchd (darwin) starts the relay
// on a connection, each after a line that names it. command starts the relay,
// the program's path first.
func Units(system string, command ...string) string {
	linux, darwin, _ := strings.Cut(units, "=== launchd\n")
	words, text, between := make([]string, len(command)), linux, " "
	if system == "darwin" {
		text, between = darwin, "\n"
	}
	for i, word := range command {
		words[i] = unitWord(word)
		if system == "darwin" {
			words[i] = "\t\t<string>" + html.EscapeString(word) + "</string>"
		}
	}
	return strings.ReplaceAll(text, "@COMMAND@", strings.Join(words, between))
}

// unitWord writes a word as systemd reads it (systemd.service(5), COMMAND
// LINES).
func unitWord(word string) string {
	word = strings.NewReplacer("%", "%%", "$", "$$").Replace(word)
	if strings.ContainsAny(word, " \t\"'\\;") || word == "" {
		return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(word) + `"`
	}
	return word
}
