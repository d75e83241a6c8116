package reference

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"strconv"
	"strings"
)

// events is the page of the fields of an event, made of the type's comments.
func events(file string) (string, error) {
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
	if err != nil {
		return "", err
	}
	fields := eventFields(parsed)
	if fields == nil {
		return "", errors.New("event.go has no type Event")
	}
	var b strings.Builder
	b.WriteString("# Events\n\nThe fields of an event of the audit log, as `bawn audit query --json` and `bawn audit export` print them. How records are\n" +
		"chained is told in [The audit log's format](../audit-format.md).\n\n| field | type | always there | meaning |\n|---|---|---|---|\n")
	for _, f := range fields {
		row, err := eventRow(f)
		if err != nil {
			return "", err
		}
		b.WriteString(row)
	}
	return b.String(), nil
}

func eventFields(f *ast.File) []*ast.Field {
	var fields []*ast.Field
	ast.Inspect(f, func(n ast.Node) bool {
		if spec, ok := n.(*ast.TypeSpec); ok && spec.Name.Name == "Event" {
			if s, ok := spec.Type.(*ast.StructType); ok {
				fields = s.Fields.List
			}
		}
		return fields == nil
	})
	return fields
}

func eventRow(f *ast.Field) (string, error) {
	tag, err := strconv.Unquote(f.Tag.Value)
	if err != nil {
		return "", err
	}
	name, options, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ",")
	always := "yes"
	if strings.Contains(options, "omitempty") {
		always = ""
	}
	text := strings.Join(strings.Fields(f.Doc.Text()+" "+f.Comment.Text()), " ")
	if text == "" {
		return "", fmt.Errorf("field %s of Event has no comment, which the page needs", f.Names[0].Name)
	}
	return fmt.Sprintf("| `%s` | %s | %s | %s |\n", name, jsonType(f.Type), always, cell(text)), nil
}

// jsonType names what a Go type is in JSON.
func jsonType(e ast.Expr) string {
	switch t := e.(type) {
	case *ast.StarExpr:
		return jsonType(t.X)
	case *ast.ArrayType:
		return "list of texts"
	case *ast.MapType:
		return "texts by name"
	case *ast.Ident:
		if t.Name == "int" || t.Name == "int64" {
			return "number"
		}
	case *ast.SelectorExpr:
		return "time (RFC 3339)"
	}
	return "text"
}
