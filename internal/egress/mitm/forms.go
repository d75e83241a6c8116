package mitm

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
)

// markups are the ways in which template engines and libraries write what
// would end a text of HTML: each replaces the characters before it.
var markups = []*strings.Replacer{
	strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&#34;", "'", "&#39;"),
	strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&#34;", "'", "&#39;", "+", "&#43;"),
	strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "'", "&#39;"),
	strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "'", "&#x27;"),
	strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "'", "&#039;"),
	strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "'", "&apos;"),
	strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "'", "&#x27;", "/", "&#x2F;"),
	strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "'", "&#39;", "/", "&#x2F;", "`", "&#x60;", "=", "&#x3D;"),
	strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;"),
}

// markupForms returns a value as HTML has it.
func markupForms(value []byte) [][]byte {
	var out [][]byte
	for _, m := range markups {
		out = append(out, []byte(m.Replace(string(value))))
	}
	return out
}

// numberForms returns a value in hexadecimal, and as HTML's character references by
// number, for every character.
func numberForms(value []byte) [][]byte {
	decimal, lower, upper := []byte{}, []byte{}, []byte{}
	for _, c := range string(value) {
		decimal = fmt.Appendf(decimal, "&#%d;", c)
		lower = fmt.Appendf(lower, "&#x%x;", c)
		upper = fmt.Appendf(upper, "&#x%X;", c)
	}
	return [][]byte{fmt.Appendf(nil, "%x", value), fmt.Appendf(nil, "%X", value), decimal, lower, upper}
}

// wideForms returns a value in UTF-16, with both orders of bytes, also as an error quotes
// them, and in hexadecimal escapes of strings (\x41).
func wideForms(value []byte) [][]byte {
	var little, big, lower, upper []byte
	for _, unit := range utf16.Encode([]rune(string(value))) {
		little = binary.LittleEndian.AppendUint16(little, unit)
		big = binary.BigEndian.AppendUint16(big, unit)
	}
	quoted := func(b []byte) []byte { q := strconv.Quote(string(b)); return []byte(q[1 : len(q)-1]) }
	for _, c := range value {
		lower = fmt.Appendf(lower, `\x%02x`, c)
		upper = fmt.Appendf(upper, `\x%02X`, c)
	}
	return [][]byte{little, big, quoted(little), quoted(big), lower, upper}
}

// unicodeForms returns a value as the inside of a JSON string in which more is
// escaped than has to be (RFC 8259 section 7): every character beyond ASCII,
// and what some libraries take for dangerous in HTML, by number.
func unicodeForms(value []byte) [][]byte {
	var out [][]byte
	for _, digits := range []string{`\u%04x`, `\u%04X`} {
		for _, marked := range []string{"", "<>&", `"&'+<>` + "`"} {
			var form []byte
			for _, c := range string(value) {
				switch {
				case c > '~':
					for _, unit := range utf16.Encode([]rune{c}) {
						form = fmt.Appendf(form, digits, unit)
					}
				case strings.ContainsRune(marked, c):
					form = fmt.Appendf(form, digits, c)
				case c == '"' || c == '\\':
					form = append(form, '\\', byte(c))
				default:
					form = append(form, byte(c))
				}
			}
			out = append(out, form)
		}
	}
	return out
}
