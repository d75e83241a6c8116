package store

import "context"

// KeepItem keeps value under a kind and an ID, in place of what was there.
// Kinds are for example "device" and "push".
func (d *DB) KeepItem(ctx context.Context, kind, id string, value []byte) error {
	return d.do(ctx, func(t *tx) error {
		return t.exec("INSERT INTO item (kind, id, value) VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET value = excluded.value",
			kind, id, append([]byte{}, value...)) // nil would be NULL
	})
}

// DropItem removes an item; none is no error.
func (d *DB) DropItem(ctx context.Context, kind, id string) error {
	return d.do(ctx, func(t *tx) error { return t.exec("DELETE FROM item WHERE kind = ? AND id = ?", kind, id) })
}

// Items returns all items of a kind by their IDs.
func (d *DB) Items(ctx context.Context, kind string) (map[string][]byte, error) {
	rows, err := d.read.QueryContext(ctx, "SELECT id, value FROM item WHERE kind = ?", kind)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	all := map[string][]byte{}
	for rows.Next() {
		var id string
		var value []byte
		if err := rows.Scan(&id, &value); err != nil {
			return nil, err
		}
		all[id] = value
	}
	return all, rows.Err()
}
