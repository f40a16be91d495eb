-- Jobs that this machine, as owner of a run, has handed to workers and that have not ended.
-- message: what was published, so that a lost stream is filled again.
CREATE TABLE jobs (
    key BLOB PRIMARY KEY,
    node TEXT NOT NULL,
    lease INTEGER NOT NULL,
    worker TEXT NOT NULL,
    subject TEXT NOT NULL,
    message BLOB NOT NULL
) STRICT;

-- What work took, by kind of work.
CREATE TABLE costs (
    kind TEXT PRIMARY KEY,
    measured TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- What is remembered under a name.
CREATE TABLE notes (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;
