CREATE INDEX asker_root ON asker (root, n);
