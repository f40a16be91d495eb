-- One row: counters that survive pruning.
CREATE TABLE state (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    commits_ever INTEGER NOT NULL,
    uses INTEGER NOT NULL,
    duplicates_dropped INTEGER NOT NULL,
    duplicates_differing INTEGER NOT NULL,
    mismatches INTEGER NOT NULL
) STRICT;
INSERT INTO state VALUES (1, 0, 0, 0, 0, 0);

-- number: place in the order of all commits, from state.commits_ever, never used twice.
-- last_used: from state.uses. bytes: size of ports. ports stands last: it may be large.
CREATE TABLE results (
    number INTEGER PRIMARY KEY,
    key BLOB NOT NULL UNIQUE CHECK (length(key) = 32),
    node_type TEXT NOT NULL,
    exactness INTEGER NOT NULL CHECK (exactness IN (0, 1, 2)),
    content BLOB NOT NULL CHECK (length(content) = 32),
    last_used INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    made_millis INTEGER NOT NULL,
    wall_millis INTEGER NOT NULL,
    engine_build TEXT NOT NULL,
    device_class TEXT NOT NULL,
    inputs BLOB NOT NULL CHECK (length(inputs) % 32 = 0),
    ports BLOB NOT NULL
) STRICT;

CREATE TABLE blobs (
    hash BLOB PRIMARY KEY CHECK (length(hash) = 32),
    bytes INTEGER NOT NULL,
    media_type TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE result_blobs (
    number INTEGER NOT NULL REFERENCES results (number) ON DELETE CASCADE,
    hash BLOB NOT NULL REFERENCES blobs (hash),
    PRIMARY KEY (number, hash)
) STRICT, WITHOUT ROWID;
CREATE INDEX result_blobs_by_hash ON result_blobs (hash);

-- A pin may name a file that no result names, so there is no reference to blobs.
CREATE TABLE pins (
    owner TEXT NOT NULL,
    hash BLOB NOT NULL CHECK (length(hash) = 32),
    PRIMARY KEY (owner, hash)
) STRICT, WITHOUT ROWID;
CREATE INDEX pins_by_hash ON pins (hash);

-- Files in use by a living process; rows of ended ones are swept.
CREATE TABLE holds (
    session TEXT NOT NULL,
    hash BLOB NOT NULL CHECK (length(hash) = 32),
    PRIMARY KEY (session, hash)
) STRICT, WITHOUT ROWID;
CREATE INDEX holds_by_hash ON holds (hash);
