CREATE TABLE approval (
	lead     TEXT PRIMARY KEY,            -- the ID of the first asker
	state    TEXT NOT NULL CHECK (state IN ('pending', 'answered', 'expired', 'withdrawn')),
	answer   BLOB,                        -- JSON, of an answered one
	settled  INTEGER NOT NULL DEFAULT 0,  -- Unix time in nanoseconds
	recorded TEXT NOT NULL DEFAULT ''     -- the last state that is in the audit log
) WITHOUT ROWID;
CREATE INDEX approval_open ON approval (lead) WHERE state = 'pending' OR recorded <> state;
CREATE INDEX approval_settled ON approval (settled) WHERE state <> 'pending';

CREATE TABLE asker (
	n        INTEGER PRIMARY KEY,
	id       TEXT NOT NULL UNIQUE,
	lead     TEXT NOT NULL,
	root     TEXT NOT NULL,
	key      TEXT NOT NULL,
	digest   TEXT NOT NULL,
	question BLOB NOT NULL,               -- JSON
	gone     INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX asker_lead ON asker (lead);

CREATE TABLE item (
	kind TEXT NOT NULL,
	id   TEXT NOT NULL,
	value BLOB NOT NULL,
	PRIMARY KEY (kind, id)
) WITHOUT ROWID;
