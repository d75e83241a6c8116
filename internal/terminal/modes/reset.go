package modes

// End ends whatever a program has left unfinished: a character, a control
// sequence or a string (some terminals end a string at CAN, others only at ST).
// It leaves the modes in which a terminal takes no ECMA-48 (Tektronix 4014,
// VT52), and resets softly (DECSTR). The cursor stays where it is.
const End = "\x18\x18\x1b\\\x1b\x03\x1b<\x1b[!p"

// Plain takes back what would hide, change or move text, also where DECSTR does
// not: rendition, character sets, scroll region, margins, origin, insertion,
// wrapping, reverse video, colors. Keys come as themselves and the mouse sends
// none. The cursor goes home.
//
// Sources: xterm's ctlseqs; the Linux console's palette (console_codes(4)).
const Plain = "\x1b[0m\x1b[0\"q\x1b[0$}\x1b(B\x1b)B\x1b*B\x1b+B\x0f" +
	"\x1b[?69l\x1b[?6l\x1b[r\x1b[?7h\x1b[?5l\x1b[?42l\x1b[2l\x1b[4l\x1b[20l\x1b[?25h\x1b[?2026l" +
	"\x1b[?1l\x1b>\x1b[?9l\x1b[?1000l\x1b[?1001l\x1b[?1002l\x1b[?1003l\x1b[?1004l\x1b[?1005l\x1b[?1006l\x1b[?1015l\x1b[?1016l" +
	"\x1b]104\x1b\\\x1b]110\x1b\\\x1b]111\x1b\\\x1b]112\x1b\\\x1b]R\x1b\\"
