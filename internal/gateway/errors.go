package gateway

import (
	"errors"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/bawn-dev/bawn/internal/redact"
)

// errAbsent says that a server does not know a method.
var errAbsent = errors.New("it has no such method")

// absent makes errAbsent of the answer that says so.
func absent(err error) error {
	var e *jsonrpc.Error
	if errors.As(err, &e) && e.Code == jsonrpc.CodeMethodNotFound {
		return errAbsent
	}
	return err
}

// maxLine is the longest text of a server in a message of one line, in bytes.
const maxLine = 500

// line is text of a stranger as one line that is safe to print, cut where it
// is long.
func line(s string) string {
	s = strings.TrimSpace(s)
	if len(s) > maxLine {
		s = strings.ToValidUTF8(s[:maxLine], "") + " [cut]"
	}
	return redact.Visible(s)
}

// refusal is an error that a client is told.
func refusal(text string) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: text}
}
