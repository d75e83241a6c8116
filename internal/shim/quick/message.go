package quick

import "unicode/utf8"

// maxHello is how long a first message may be that is sent this way.
const maxHello = 256 << 10

// hello is the frame that asks for a command whose descriptors 0 to 2 are all
// open and no terminal (intent.Hello). It returns nil for words that JSON can't
// carry as they are.
func hello(argv []string, dir string, environ []string) []byte {
	size := 256 + len(dir)
	for _, list := range [][]string{argv, environ} {
		for _, s := range list {
			if size += len(s) + 8; !utf8.ValidString(s) {
				return nil
			}
		}
	}
	if size > maxHello || !utf8.ValidString(dir) {
		return nil
	}
	b := make([]byte, header, size)
	b = append(b, `{"Exec":{"Argv":`...)
	b = list(b, argv)
	b = append(b, `,"Dir":`...)
	b = quote(b, dir)
	b = append(b, `,"Env":`...)
	b = list(b, environ)
	b = append(b, `,"Stdio":[true,true,true]}}`...)
	n := len(b) - header
	b[0], b[1], b[2], b[3] = byte(n>>24), byte(n>>16), byte(n>>8), byte(n)
	return b
}

func list(b []byte, words []string) []byte {
	b = append(b, '[')
	for i, w := range words {
		if i > 0 {
			b = append(b, ',')
		}
		b = quote(b, w)
	}
	return append(b, ']')
}

// quote appends a string of JSON (RFC 8259, 7).
func quote(b []byte, s string) []byte {
	const digits = "0123456789abcdef"
	b = append(b, '"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c < ' ':
			b = append(b, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
		default:
			b = append(b, c)
		}
	}
	return append(b, '"')
}

const (
	header   = 4    // bytes of a frame's length
	maxReply = 1024 // bytes of replies that are looked at
)

// cut takes the first reply out of the bytes from the session socket; nil if it is
// incomplete. known is false if it is longer than replies that are known here.
func cut(said []byte) (reply, rest []byte, known bool) {
	if len(said) < header {
		return nil, said, true
	}
	n := int(said[0])<<24 | int(said[1])<<16 | int(said[2])<<8 | int(said[3])
	if n > maxReply || n < 0 {
		return nil, said, false
	}
	if len(said) < header+n {
		return nil, said, true
	}
	return said[header : header+n], said[header+n:], true
}

// cutStarted takes away what says that the command has been started.
func cutStarted(said []byte) (rest []byte, started bool) {
	reply, rest, _ := cut(said)
	if string(reply) != `{"Started":true}` {
		return said, false
	}
	return rest, true
}

// exit reads in what the session socket has said the code of a command that has ended by
// itself. Until then there is nothing, or that the command has been started.
// known is false for everything else.
func exit(said []byte) (code int, ended, known bool) {
	said, _ = cutStarted(said)
	reply, _, known := cut(said)
	if reply == nil || !known {
		return 0, false, known
	}
	code, ended = exitCode(reply)
	return code, ended, ended
}

// exitCode reads {"Exit":{"Code":7,"Signal":0}}.
func exitCode(reply []byte) (code int, ok bool) {
	const begin, end = `{"Exit":{"Code":`, `,"Signal":0}}`
	if len(reply) < len(begin)+1+len(end) || string(reply[:len(begin)]) != begin || string(reply[len(reply)-len(end):]) != end {
		return 0, false
	}
	digits := reply[len(begin) : len(reply)-len(end)]
	for _, c := range digits {
		if c < '0' || c > '9' || len(digits) > 3 {
			return 0, false
		}
		code = code*10 + int(c-'0')
	}
	return code, code <= 255
}
