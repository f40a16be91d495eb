CREATE TABLE entities (
    kind TEXT NOT NULL,
    id TEXT NOT NULL,
    revision INTEGER NOT NULL,
    order_key TEXT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (kind, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX entities_in_order ON entities (kind, order_key, id);

-- One row. revision: given to every entity written, so that none is used twice, not even when an
-- entity is deleted and comes back.
CREATE TABLE state (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    revision INTEGER NOT NULL
) STRICT;
INSERT INTO state VALUES (1, 0);

CREATE TABLE settings (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- The undo log: rows with undone = 0 in order of seq, then those with undone = 1.
CREATE TABLE commands (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    undone INTEGER NOT NULL CHECK (undone IN (0, 1)),
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    at_millis INTEGER NOT NULL,
    body TEXT NOT NULL,
    forward TEXT NOT NULL,
    backward TEXT NOT NULL
) STRICT;

-- Files in media/.
CREATE TABLE media (
    hash BLOB PRIMARY KEY CHECK (length(hash) = 32),
    bytes INTEGER NOT NULL,
    media_type TEXT NOT NULL,
    kept_millis INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Results kept with the project, with the encoding of ports that the store uses.
CREATE TABLE kept_results (
    key BLOB PRIMARY KEY CHECK (length(key) = 32),
    node_type TEXT NOT NULL,
    content BLOB NOT NULL CHECK (length(content) = 32),
    ports BLOB NOT NULL
) STRICT, WITHOUT ROWID;
