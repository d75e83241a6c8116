package mitm

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"net/http"
	"strings"
)

// refusedCode is the name of a refusal where AWS's clients want one.
const refusedCode = "BawnRefused"

// awsError writes a refusal so that the client of a signed request shows its
// reason, or returns "" where the request is not signed. Each protocol has
// errors of its own: "__type" and "message" in JSON, and an element that is
// wrapped as its service does it in XML.
func (r *Refusal) awsError(request http.Header) (kind string, body []byte) {
	signed := request.Get("Authorization")
	if !strings.HasPrefix(signed, "AWS4-") {
		return "", nil
	}
	if kind = request.Get("Content-Type"); strings.Contains(kind, "json") {
		body, _ = json.Marshal(map[string]string{"__type": refusedCode, "message": r.text()}) // strings always marshal
		return "application/json", body
	}
	before, after := "<ErrorResponse>", "</ErrorResponse>"
	switch {
	case strings.Contains(signed, "/s3/aws4_request"):
		before, after = "", ""
	case strings.Contains(signed, "/ec2/aws4_request"):
		before, after = "<Response><Errors>", "</Errors></Response>"
	}
	var b bytes.Buffer
	b.WriteString(xml.Header + before + "<Error><Code>" + refusedCode + "</Code><Message>")
	_ = xml.EscapeText(&b, []byte(r.text())) // a buffer takes everything
	b.WriteString("</Message></Error>" + after + "\n")
	return "application/xml", b.Bytes()
}
