package grammar

import "strings"

// jqRefused are the functions of jq and yq that read the environment or other
// files, or run programs.
var jqRefused = NewWordSet("import include env ENV input_filename load load_str load_xml load_props load_base64 loadstr " +
	"strenv envsubst system exec get_search_list modulemeta input_line_number debug stderr __prog_args eval")

// jq accepts a filter that names none of them. A field of that name (.env) is
// fine. Text in strings is judged like code, since it can hold \(…).
func jq(filter string) error {
	if strings.ContainsRune(filter, '\\') && strings.Contains(filter, `\u`) {
		return unproven("the jq filter has escapes that hide names")
	}
	for i := 0; i < len(filter); {
		n := 0
		for i+n < len(filter) && identifier("_"+filter[i+n:i+n+1]) {
			n++
		}
		if n == 0 {
			i++
			continue
		}
		if word := filter[i : i+n]; jqRefused.Has(word) && (i == 0 || filter[i-1] != '.' || strings.HasSuffix(filter[:i], "..")) {
			return unproven("the jq filter uses ", word)
		}
		i += n
	}
	return nil
}
