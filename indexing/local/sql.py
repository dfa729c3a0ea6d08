"""The tables of the local index and every statement on them.

Rows of `chunks`, `words` and `vectors` never change: a new version of a document gets new rows, and
`documents` says which rows are current. A version of a document is identified by its first row.
"""

SCHEMA_VERSION = 2

TABLES = (
    "CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    """
    CREATE TABLE state (
        counter INTEGER NOT NULL,         -- grows with every change that readers must notice
        next_row INTEGER NOT NULL,        -- row numbers are never reused
        slots INTEGER NOT NULL,           -- vectors in the vector files, obsolete ones included
        chunks INTEGER NOT NULL,          -- that are current
        vector_epoch INTEGER NOT NULL,    -- the current vector files
        fulltext_epoch INTEGER NOT NULL   -- the current folder of the full-text index
    )
    """,
    "INSERT INTO state VALUES (0, 0, 0, 0, 0, 0)",
    """
    CREATE TABLE documents (
        ordinal INTEGER PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        generation INTEGER NOT NULL,
        content_hash TEXT NOT NULL,
        first_row INTEGER NOT NULL,
        count INTEGER NOT NULL,
        first_slot INTEGER NOT NULL,
        reader_set INTEGER NOT NULL,
        label_set INTEGER NOT NULL,
        source INTEGER NOT NULL,          -- a label
        media_type INTEGER NOT NULL,      -- a label
        people_set INTEGER NOT NULL,
        boost REAL NOT NULL,
        hidden INTEGER NOT NULL,
        created INTEGER,                  -- microseconds since 1970, UTC
        updated INTEGER,
        changed INTEGER NOT NULL,         -- the counter of the last change
        details TEXT NOT NULL             -- what is shown of the document, as JSON
    )
    """,
    "CREATE INDEX documents_changed ON documents (changed)",
    "CREATE INDEX documents_first_row ON documents (first_row)",
    """
    -- Ordinals of deleted documents, free for reuse.
    CREATE TABLE tombstones (ordinal INTEGER PRIMARY KEY, changed INTEGER NOT NULL)
    """,
    "CREATE INDEX tombstones_changed ON tombstones (changed)",
    """
    CREATE TABLE chunks (
        row INTEGER PRIMARY KEY,
        document INTEGER NOT NULL,
        section INTEGER NOT NULL,
        span_start INTEGER NOT NULL,
        span_end INTEGER NOT NULL,
        page INTEGER,
        link TEXT NOT NULL,
        headings TEXT,                    -- a JSON list
        embedded_text TEXT NOT NULL,
        text_start INTEGER,               -- where the text begins in embedded_text
        text_end INTEGER,
        text TEXT                         -- only if it is not part of embedded_text
    )
    """,
    "CREATE TABLE words (row INTEGER PRIMARY KEY, words TEXT NOT NULL)",
    "CREATE TABLE vectors (row INTEGER PRIMARY KEY, vector BLOB NOT NULL)",
    """
    -- Sources, media types, sets, projects, personas, tags, languages, people, their names and reader tokens, as small numbers.
    CREATE TABLE labels (
        id INTEGER PRIMARY KEY, kind TEXT NOT NULL, value TEXT NOT NULL, UNIQUE (kind, value)
    )
    """,
    "CREATE TABLE label_sets (id INTEGER PRIMARY KEY AUTOINCREMENT, labels BLOB NOT NULL UNIQUE)",
    """
    -- Labels of people, and the labels of their names in the same order.
    CREATE TABLE people_sets (
        id INTEGER PRIMARY KEY AUTOINCREMENT, labels BLOB NOT NULL, names BLOB NOT NULL,
        UNIQUE (labels, names)
    )
    """,
    """
    CREATE TABLE reader_sets (
        id INTEGER PRIMARY KEY AUTOINCREMENT, tokens TEXT NOT NULL UNIQUE, labels BLOB NOT NULL
    )
    """,
    """
    CREATE TABLE reader_set_tokens (
        reader_set INTEGER NOT NULL, token TEXT NOT NULL, PRIMARY KEY (reader_set, token)
    ) WITHOUT ROWID
    """,
    """
    -- Versions whose entries in the full-text index, or whose rows, may be left over or outdated.
    CREATE TABLE outbox (version INTEGER PRIMARY KEY, count INTEGER NOT NULL)
    """,
)

HAS_TABLES = "SELECT count(*) FROM sqlite_master WHERE name = 'meta'"
READ_META = "SELECT value FROM meta WHERE name = ?"
WRITE_META = "INSERT OR REPLACE INTO meta VALUES (?, ?)"

READ_STATE = "SELECT counter, next_row, slots, chunks, vector_epoch, fulltext_epoch FROM state"
USE_ROWS = "UPDATE state SET next_row = ?"
WRITE_STATE = (
    "UPDATE state SET counter = ?, next_row = ?, slots = ?, chunks = ?, vector_epoch = ?,"
    " fulltext_epoch = ?"
)

# The last check of access: every statement that reads a chunk for an asker contains MAY_READ. Searches have
# narrowed their candidates to what the asker and everybody in the audience may see, but by columns in memory and by the full-text index, which
# are read at another moment than the chunk. IS_CURRENT keeps rows out that belong to a former version of the
# document, or to a deleted document whose ordinal another one was given since.
#
# SQLite would look up each token of the asker in the set of a document, so that somebody in many groups waited for it.
# Most sets are short, and the asker holds a token of theirs: the first tokens of a set are compared before that.
MAY_READ = """
    d.hidden = 0 AND (EXISTS (
        SELECT 1 FROM (SELECT token FROM reader_set_tokens WHERE reader_set = d.reader_set LIMIT 16) r
        WHERE r.token IN (SELECT value FROM json_each(:tokens)))
    OR EXISTS (
        SELECT 1 FROM reader_set_tokens r WHERE r.reader_set = d.reader_set
        AND r.token IN (SELECT value FROM json_each(:tokens))))
    AND NOT EXISTS (
        SELECT 1 FROM json_each(:audience) person WHERE NOT EXISTS (
            SELECT 1 FROM reader_set_tokens r WHERE r.reader_set = d.reader_set
            AND r.token IN (SELECT value FROM json_each(person.value))))
"""
IS_CURRENT = "c.row >= d.first_row AND c.row < d.first_row + d.count"

CHUNK = """
    c.row, c.section, c.span_start, c.span_end, c.page, c.link, c.headings, c.embedded_text,
    c.text_start, c.text_end, c.text,
    d.ordinal, d.id, d.first_row, d.boost, d.created, d.updated, d.details, s.tokens
"""
CHUNKS_TO_SHOW = f"""
    SELECT w.words, {CHUNK} FROM chunks c JOIN words w ON w.row = c.row
    JOIN documents d ON d.ordinal = c.document JOIN reader_sets s ON s.id = d.reader_set
    WHERE c.row IN (SELECT value FROM json_each(:rows)) AND {IS_CURRENT} AND {MAY_READ}
"""
CHUNKS_OF_RANGE = f"""
    SELECT '', {CHUNK} FROM documents d JOIN reader_sets s ON s.id = d.reader_set
    JOIN chunks c ON c.row >= d.first_row + :start AND c.row < d.first_row + min(:end, d.count)
    WHERE d.id = :id AND {MAY_READ} ORDER BY c.row
"""
TEXTS_TO_CHECK = f"""
    SELECT c.row, c.embedded_text FROM chunks c JOIN documents d ON d.ordinal = c.document
    WHERE c.row IN (SELECT value FROM json_each(:rows)) AND {IS_CURRENT} AND {MAY_READ}
"""
# A missing date becomes the smallest integer.
COLUMNS = """
    SELECT ordinal, first_row, count, first_slot, reader_set, label_set, source, media_type, people_set,
    boost, hidden, coalesce(created, -9223372036854775808), coalesce(updated, -9223372036854775808)
    FROM documents
"""
ALL_COLUMNS = COLUMNS + "WHERE ?1 < changed"
CHANGED_COLUMNS = COLUMNS + "INDEXED BY documents_changed WHERE changed > ?1"
CHANGED_TOMBSTONES = "SELECT ordinal FROM tombstones WHERE changed > ?"
LABEL_SETS_SINCE = "SELECT id, labels FROM label_sets WHERE id > ? ORDER BY id"
PEOPLE_SETS_SINCE = "SELECT id, labels FROM people_sets WHERE id > ? ORDER BY id"
NAME_SETS_SINCE = "SELECT id, names FROM people_sets WHERE id > ? ORDER BY id"
READER_SETS_SINCE = "SELECT id, labels FROM reader_sets WHERE id > ? ORDER BY id"

LABELS_OF = "SELECT id FROM labels WHERE kind = ? AND value IN (SELECT value FROM json_each(?))"
LABELS_OF_KIND = "SELECT id, value FROM labels WHERE kind = ?"
LABEL_NAMES = "SELECT id, value FROM labels WHERE id IN (SELECT value FROM json_each(?))"
ORDINALS_OF = "SELECT ordinal FROM documents WHERE id IN (SELECT value FROM json_each(?))"

# A document without chunks has no readers, whatever an amendment once gave it.
SCAN = """
    SELECT d.id, d.generation, d.count, d.content_hash, iif(d.count > 0, s.tokens, '[]')
    FROM documents d JOIN reader_sets s ON s.id = d.reader_set
    WHERE d.id > ? ORDER BY d.id LIMIT ?
"""
EXPORTED = """
    SELECT ordinal, id, generation, content_hash, hidden, first_row, first_row + count FROM documents
    WHERE id > ? ORDER BY id LIMIT 1
"""
CHUNKS_OF_DOCUMENT = f"""
    SELECT '', {CHUNK} FROM documents d JOIN reader_sets s ON s.id = d.reader_set
    JOIN chunks c ON c.row >= d.first_row AND c.row < d.first_row + d.count
    WHERE d.ordinal = ? ORDER BY c.row
"""
VECTORS_OF_ROWS = "SELECT vector FROM vectors WHERE row >= ? AND row < ? ORDER BY row"

STORED_DOCUMENTS = """
    SELECT d.id, d.ordinal, d.generation, d.first_row, d.count, d.hidden, d.details, r.labels
    FROM documents d JOIN reader_sets r ON r.id = d.reader_set
    WHERE d.id IN (SELECT value FROM json_each(?))
"""
FREE_ORDINALS = "SELECT ordinal FROM tombstones ORDER BY ordinal LIMIT ?"
LAST_ORDINAL = """
    SELECT max(coalesce((SELECT max(ordinal) FROM documents), -1),
    coalesce((SELECT max(ordinal) FROM tombstones), -1))
"""
ADD_CHUNK = "INSERT INTO chunks VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
ADD_WORDS = "INSERT INTO words VALUES (?, ?)"
ADD_VECTOR = "INSERT INTO vectors VALUES (?, ?)"
PUT_DOCUMENT = """
    INSERT OR REPLACE INTO documents VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
AMEND_DOCUMENT = """
    UPDATE documents SET reader_set = coalesce(:reader_set, reader_set),
    label_set = coalesce(:label_set, label_set), boost = coalesce(:boost, boost),
    hidden = coalesce(:hidden, hidden), details = coalesce(:details, details), changed = :changed
    WHERE ordinal = :ordinal
"""
DELETE_DOCUMENT = "DELETE FROM documents WHERE ordinal = ?"
ADD_TOMBSTONE = "INSERT INTO tombstones VALUES (?, ?)"
USE_ORDINAL = "DELETE FROM tombstones WHERE ordinal = ?"

ADD_LABEL = "INSERT OR IGNORE INTO labels (kind, value) VALUES (?, ?)"
LABEL = "SELECT id FROM labels WHERE kind = ? AND value = ?"
ADD_LABEL_SET = "INSERT OR IGNORE INTO label_sets (labels) VALUES (?)"
LABEL_SET = "SELECT id FROM label_sets WHERE labels = ?"
ADD_PEOPLE_SET = "INSERT OR IGNORE INTO people_sets (labels, names) VALUES (?, ?)"
PEOPLE_SET = "SELECT id FROM people_sets WHERE labels = ? AND names = ?"
ADD_READER_SET = "INSERT OR IGNORE INTO reader_sets (tokens, labels) VALUES (?, ?)"
READER_SET = "SELECT id FROM reader_sets WHERE tokens = ?"
ADD_READER_SET_TOKEN = "INSERT OR IGNORE INTO reader_set_tokens VALUES (?, ?)"

# Created with the first selection by label: an index of an earlier version lacks it.
INDEX_LABEL_SETS = "CREATE INDEX IF NOT EXISTS documents_label_set ON documents (label_set)"
HAS_LABEL_SET_INDEX = "SELECT count(*) FROM sqlite_master WHERE name = 'documents_label_set'"
ALL_LABEL_SETS = "SELECT id, labels FROM label_sets"
SELECTED_IDS = "id IN (SELECT value FROM json_each(?))"
SELECTED_PREFIX = "id >= ? AND id < ?"
SELECTED_LABEL_SETS = "label_set IN (SELECT value FROM json_each(?))"
# Without the index of label sets: the documents are found by their ids.
CHECKED_LABEL_SETS = "+label_set IN (SELECT value FROM json_each(?))"
UNSELECTED_LABEL_SETS = "+label_set NOT IN (SELECT value FROM json_each(?))"
SELECTED_ORDINALS = "SELECT ordinal FROM documents WHERE count > 0"
SELECTED_DOCUMENTS = """
    SELECT id, details FROM documents
    WHERE ordinal IN (SELECT value FROM json_each(?)) AND count > 0
"""

ADD_OUTBOX = "INSERT OR REPLACE INTO outbox VALUES (?, ?)"
CLEAR_OUTBOX = "DELETE FROM outbox WHERE version = ?"
READ_OUTBOX = """
    SELECT o.version, o.count, d.ordinal IS NOT NULL FROM outbox o
    LEFT JOIN documents d ON d.first_row = o.version AND d.count > 0 ORDER BY o.version
"""
DROP_CHUNKS = "DELETE FROM chunks WHERE row >= ? AND row < ?"
DROP_WORDS = "DELETE FROM words WHERE row >= ? AND row < ?"
DROP_VECTORS = "DELETE FROM vectors WHERE row >= ? AND row < ?"

ENTRIES = """
    SELECT c.row, d.ordinal, d.first_row, d.hidden, d.source, d.media_type, d.created, d.updated, w.words,
    c.embedded_text, l.labels, p.labels, r.labels
    FROM documents d JOIN chunks c ON c.row >= d.first_row AND c.row < d.first_row + d.count
    JOIN words w ON w.row = c.row
    JOIN label_sets l ON l.id = d.label_set JOIN people_sets p ON p.id = d.people_set
    JOIN reader_sets r ON r.id = d.reader_set
"""
ENTRIES_OF_VERSION = ENTRIES + "WHERE d.first_row = ?"
ALL_ENTRIES = ENTRIES + "ORDER BY d.first_row, c.row"

ALL_VECTORS = """
    SELECT v.vector FROM documents d
    JOIN vectors v ON v.row >= d.first_row AND v.row < d.first_row + d.count
    ORDER BY d.first_row, v.row
"""
VERSIONS = "SELECT ordinal, count FROM documents ORDER BY first_row"
MOVE_SLOTS = "UPDATE documents SET first_slot = ? WHERE ordinal = ?"
