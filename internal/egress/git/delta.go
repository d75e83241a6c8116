package git

import "errors"

var errDelta = errors.New("a delta in the pack can't be applied to its base")

// patch applies a delta to its base (gitformat-pack(5), "Deltified
// representation").
func patch(base, program []byte) ([]byte, error) {
	from, program, ok := deltaSize(program)
	if !ok || from != len(base) {
		return nil, errDelta
	}
	to, program, ok := deltaSize(program)
	if !ok || to > maxCommit {
		return nil, errDelta
	}
	out := make([]byte, 0, to)
	for len(program) > 0 {
		var piece []byte
		if piece, program, ok = deltaStep(base, program); !ok || len(out)+len(piece) > to {
			return nil, errDelta
		}
		out = append(out, piece...)
	}
	if len(out) != to {
		return nil, errDelta
	}
	return out, nil
}

// deltaStep carries one instruction out: copy from the base, or insert.
func deltaStep(base, program []byte) (piece, rest []byte, ok bool) {
	op, program := program[0], program[1:]
	if op&0x80 == 0 {
		n := int(op)
		if n == 0 || n > len(program) {
			return nil, nil, false
		}
		return program[:n], program[n:], true
	}
	offset, program, ok := deltaNumber(program, op, 4)
	if !ok {
		return nil, nil, false
	}
	size, program, ok := deltaNumber(program, op>>4&7, 3)
	if size == 0 {
		size = 0x10000
	}
	if !ok || offset+size > len(base) {
		return nil, nil, false
	}
	return base[offset : offset+size], program, true
}

// deltaNumber reads a number whose bytes are present as bits say.
func deltaNumber(program []byte, bits byte, width int) (n int, rest []byte, ok bool) {
	for i := range width {
		if bits&(1<<i) == 0 {
			continue
		}
		if len(program) == 0 {
			return 0, nil, false
		}
		n |= int(program[0]) << (8 * i)
		program = program[1:]
	}
	return n, program, true
}

// deltaSize reads a size in groups of seven bits.
func deltaSize(program []byte) (n int, rest []byte, ok bool) {
	for shift := 0; shift <= 28 && len(program) > 0; shift += 7 {
		b := program[0]
		program = program[1:]
		n |= int(b&0x7f) << shift
		if b&0x80 == 0 {
			return n, program, true
		}
	}
	return 0, nil, false
}
