package secrets

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bawn-dev/bawn"
)

// Formats are the forms in which a masked file is written. "raw" may carry a
// text in which "{}" stands for the placeholder: "raw:token={}", and "aws" the
// name of a profile: "aws:work".
var Formats = []string{"npmrc", "netrc", "kubeconfig", "gh", "docker", "git-credentials", "pip", "aws", "raw"}

// places are those in which the clients of a format send what they read.
var places = map[string][]bawn.Place{
	"npmrc": {bawn.Bearer, bawn.Basic}, "netrc": {bawn.Basic}, "kubeconfig": {bawn.Bearer}, "gh": {bawn.Bearer, bawn.Basic, bawn.Header},
	"docker": {bawn.Basic}, "git-credentials": {bawn.Basic}, "pip": {bawn.Basic}, "aws": {bawn.Signed},
}

// kindOf is the format without the text of raw.
func kindOf(format string) string {
	kind, _, _ := strings.Cut(format, ":")
	return kind
}

// checkFormat wants a format that we write and whose clients send the
// credential to the binding's place.
func checkFormat(b bawn.Binding) error {
	kind, template, has := strings.Cut(b.Format, ":")
	switch {
	case !slices.Contains(Formats, kind):
		return fmt.Errorf("the format is %q; want one of %s", b.Format, strings.Join(Formats, ", "))
	case kind == AWSFormat && has && !awsProfileName().MatchString(template):
		return fmt.Errorf("the format is %q; want the name of a profile behind the colon", b.Format)
	case kind != "raw" && kind != AWSFormat && has:
		return fmt.Errorf("the format is %q; want %q without a text", b.Format, kind)
	case kind == "raw" && has && (strings.Count(template, "{}") == 0 || len(template) > 4096 || strings.ContainsRune(template, 0)):
		return fmt.Errorf("the format is %q; want \"{}\" in its text, where the placeholder goes", b.Format)
	case kind == AWSFormat && b.Place != bawn.Signed:
		return failure("give --aws; a Bedrock API key is another thing, and can be bound with --bearer --env AWS_BEARER_TOKEN_BEDROCK",
			"the place is %s; clients that read aws sign with what they find (Signature Version 4) and never send it", b.Place)
	case kind != "raw" && !slices.Contains(places[kind], b.Place):
		return fmt.Errorf("the place is %s; clients that read %s send what they find as %s", b.Place, kind, oneOf(places[kind]))
	}
	return nil
}

func oneOf(list []bawn.Place) string {
	var names []string
	for _, p := range list {
		names = append(names, p.String())
	}
	return strings.Join(names, " or ")
}
