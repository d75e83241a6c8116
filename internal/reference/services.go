package reference

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/bawn-dev/bawn/internal/relay/api"
)

var (
	service = regexp.MustCompile(`^service (\w+) \{`)
	method  = regexp.MustCompile(`^  rpc (\w+)\((stream )?(\w+)\) returns \((stream )?(\w+)\);`)
	comment = regexp.MustCompile(`^ *// ?(.*)$`)
)

// services is the page of the relay's API, made of the comments of its .proto files and
// of the table of who may call what.
func services(dir string) (string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.proto"))
	if err != nil || len(files) == 0 {
		return "", fmt.Errorf("no .proto file in %q: %w", dir, err)
	}
	var b strings.Builder
	b.WriteString("# Methods of the relay's API\n\nHow calls are made is told in [The relay's API](../dev/internals/relay-api.md); the messages are in [proto/bawn/v1](../../proto/bawn/v1).\n")
	rights := api.Rights()
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return "", err
		}
		if err := protoServices(&b, string(text), rights); err != nil {
			return "", fmt.Errorf("%s: %w", file, err)
		}
	}
	for procedure := range rights {
		return "", fmt.Errorf("no .proto file has the method %q", procedure)
	}
	return b.String(), nil
}

// protoServices writes the services of one file, and takes what it has written out of
// rights.
func protoServices(b *strings.Builder, text string, rights map[string]string) error {
	var said []string
	name := ""
	for _, line := range strings.Split(text, "\n") {
		if m := comment.FindStringSubmatch(line); m != nil {
			said = append(said, m[1])
			continue
		}
		words := escape(strings.Join(said, " "))
		said = nil
		if m := service.FindStringSubmatch(line); m != nil {
			name = m[1]
			fmt.Fprintf(b, "\n## %s\n\n%s\n\n| method | who may | what it does |\n|---|---|---|\n", name, words)
		}
		m := method.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		procedure := "/bawn.v1." + name + "/" + m[1]
		who, ok := rights[procedure]
		if name != "AuthService" && !ok {
			return fmt.Errorf("%s has no right", procedure)
		}
		if !ok {
			who = "anybody over HTTPS"
		}
		delete(rights, procedure)
		stream := ""
		if m[4] != "" {
			stream = " (a stream)"
		}
		fmt.Fprintf(b, "| `%s`%s | %s | %s |\n", m[1], stream, who, strings.ReplaceAll(words, "|", `\|`))
	}
	return nil
}
