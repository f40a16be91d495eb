-- What a shot could show: once for each content, never taken away, not by undo either. What people
-- think of a take (chosen, rated, off the list) stands where edits stand.
-- shot: id of the shot's entity, which may be gone and come back.
CREATE TABLE takes (
    shot TEXT NOT NULL,
    content BLOB NOT NULL CHECK (length(content) = 32),
    at_millis INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    made TEXT NOT NULL,
    PRIMARY KEY (shot, content)
) STRICT, WITHOUT ROWID;
