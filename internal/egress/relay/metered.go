package relay

// A metered stream counts the bytes read from and written to the guest, applies
// the host's limit, and first returns the buffered bytes.
type metered struct {
	stream
	said  []byte
	flow  *flow
	quota *quota
}

func (m *metered) Read(b []byte) (int, error) {
	n, err := 0, error(nil)
	if len(m.said) > 0 {
		n = copy(b, m.said)
		m.said = m.said[n:]
	} else {
		n, err = m.stream.Read(b)
	}
	if limited := m.flow.spend(n, m.quota); limited != nil {
		return 0, limited
	}
	return n, err
}

func (m *metered) Write(b []byte) (int, error) {
	n, err := m.stream.Write(b)
	m.flow.in.Add(int64(n))
	return n, err
}
