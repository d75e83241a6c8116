package web_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// notRead are the answers that a page never gets.
var notRead = []string{"deviceServicePairResponse", "systemServiceStatusResponse"}

var (
	tsMessage = regexp.MustCompile(`(?s)export const (\w+) = message\(\{\n(.*?)\}\);`)
	tsField   = regexp.MustCompile(`(?m)^  (\w+): (.*),$`)
	tsChoice  = regexp.MustCompile(`export const (\w+) = names\('(\w+_)', \[(.*)\]\);`)
)

// TestPageReadsTheProtocol holds web/src/wire/messages.ts to proto/bawn/v1:
// each field of each message that the page gets, with its type.
func TestPageReadsTheProtocol(t *testing.T) {
	text, err := os.ReadFile("../../web/src/wire/messages.ts")
	if err != nil {
		t.Fatal(err)
	}
	read := map[string]bool{}
	for _, m := range tsMessage.FindAllStringSubmatch(string(text), -1) {
		read[m[1]] = true
		if want, got := fieldsOf(t, m[1]), tsFields(m[2]); !slices.Equal(got, want) {
			t.Errorf("%s reads\n%s\nwant\n%s", m[1], strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	for _, c := range tsChoice.FindAllStringSubmatch(string(text), -1) {
		checkChoice(t, c[1], c[2], c[3])
	}
	protoregistry.GlobalFiles.RangeFilesByPackage("bawn.v1", func(f protoreflect.FileDescriptor) bool {
		for i := range f.Messages().Len() {
			m := f.Messages().Get(i)
			name := lower(string(m.Name()))
			if strings.HasSuffix(name, "Response") && m.Fields().Len() > 0 && !read[name] && !slices.Contains(notRead, name) {
				t.Errorf("the page can't read %s", name)
			}
		}
		return true
	})
	if len(read) < 30 {
		t.Errorf("%d messages were found; the expressions of this test no longer fit", len(read))
	}
}

func tsFields(body string) []string {
	var out []string
	for _, f := range tsField.FindAllStringSubmatch(body, -1) {
		out = append(out, f[1]+": "+f[2])
	}
	return out
}

func lower(name string) string { return strings.ToLower(name[:1]) + name[1:] }

func find[D protoreflect.Descriptor](t *testing.T, name string) D {
	t.Helper()
	d, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName("bawn.v1." + strings.ToUpper(name[:1]) + name[1:]))
	out, ok := d.(D)
	if err != nil || !ok {
		t.Fatalf("%s is in messages.ts, but not in the protocol: %v", name, err)
	}
	return out
}

// fieldsOf writes the fields of a message as messages.ts has them.
func fieldsOf(t *testing.T, name string) []string {
	t.Helper()
	fields := find[protoreflect.MessageDescriptor](t, name).Fields()
	var out []string
	for i := range fields.Len() {
		f := fields.Get(i)
		reader := readerOf(f)
		switch {
		case f.IsMap():
			reader = "texts" // each map of ours is one of texts
		case f.IsList():
			reader = "list(" + reader + ")"
		case f.HasOptionalKeyword(), f.Message() != nil && reader != "time":
			reader = "optional(" + reader + ")"
		}
		out = append(out, f.JSONName()+": "+reader)
	}
	return out
}

func readerOf(f protoreflect.FieldDescriptor) string {
	switch f.Kind() {
	case protoreflect.StringKind:
		return "text"
	case protoreflect.BoolKind:
		return "flag"
	case protoreflect.BytesKind:
		return "bytes"
	case protoreflect.EnumKind:
		return lower(string(f.Enum().Name()))
	case protoreflect.MessageKind:
		if f.Message().FullName() == "google.protobuf.Timestamp" {
			return "time"
		}
		return lower(string(f.Message().Name()))
	}
	return "number"
}

// checkChoice wants the names of an enumeration, in their order.
func checkChoice(t *testing.T, name, prefix, list string) {
	t.Helper()
	values := find[protoreflect.EnumDescriptor](t, name).Values()
	var want []string
	for i := range values.Len() {
		want = append(want, "'"+strings.ToLower(strings.TrimPrefix(string(values.Get(i).Name()), prefix))+"'")
	}
	if got := strings.Split(list, ", "); !slices.Equal(got, want) {
		t.Errorf("%s has %q, want %q", name, got, want)
	}
}
