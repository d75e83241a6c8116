package gitstore

func (s *Store) made() []string { return nil }
