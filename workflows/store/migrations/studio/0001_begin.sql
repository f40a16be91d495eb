-- Work that was asked for. place: order of those that wait. request: what was asked for; shown:
-- what people are told of it.
CREATE TABLE jobs (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    place REAL NOT NULL,
    state TEXT NOT NULL,
    kind TEXT NOT NULL,
    starts INTEGER NOT NULL,
    request TEXT NOT NULL,
    shown TEXT NOT NULL
) STRICT;
CREATE INDEX jobs_in_order ON jobs (place, id);

-- The last lines that jobs said.
CREATE TABLE job_lines (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    job INTEGER NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
    line TEXT NOT NULL
) STRICT;
CREATE INDEX job_lines_of ON job_lines (job, number);

-- What is remembered under a name: settings, recent projects.
CREATE TABLE notes (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;
