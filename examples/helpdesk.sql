-- The help desk's tables, three initial tickets, and a view of each ticket as JSON.
CREATE TABLE IF NOT EXISTS ticket (
  id INTEGER PRIMARY KEY,
  subject TEXT NOT NULL,
  description TEXT NOT NULL,
  priority TEXT NOT NULL,
  reporter TEXT NOT NULL, -- a person as JSON
  assignee TEXT,          -- likewise
  status TEXT NOT NULL DEFAULT 'open',
  resolution TEXT,
  created TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%SZ', 'now'))
);
CREATE TABLE IF NOT EXISTS comment (
  id INTEGER PRIMARY KEY,
  ticket INTEGER NOT NULL REFERENCES ticket,
  author TEXT NOT NULL,
  text TEXT NOT NULL,
  at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%SZ', 'now'))
);
CREATE TABLE IF NOT EXISTS attachment (
  ticket INTEGER NOT NULL REFERENCES ticket,
  name TEXT NOT NULL,
  media_type TEXT NOT NULL,
  content BLOB NOT NULL,
  PRIMARY KEY (ticket, name)
);

INSERT OR IGNORE INTO ticket VALUES
  (1, 'Printer jams', 'It takes two sheets at once.', 'high', '{"name":"Ada","email":"ada@example.com"}',
   '{"name":"Sam","email":"sam@example.com"}', 'open', NULL, '2026-07-27T08:15:00Z'),
  (2, 'No sound in room 4', 'The speakers are silent.', 'normal', '{"name":"Lin","email":"lin@example.com"}',
   '{"name":"Sam","email":"sam@example.com"}', 'waiting', NULL, '2026-07-27T09:30:00Z'),
  (3, 'Badge does not open the door', 'The light stays red.', 'urgent', '{"name":"Bo","email":"bo@example.com"}',
   NULL, 'open', NULL, '2026-07-28T07:45:00Z');
INSERT OR IGNORE INTO comment VALUES
  (1, 2, '{"name":"Sam","email":"sam@example.com"}', 'Is the amplifier on?', '2026-07-27T10:00:00Z');

CREATE VIEW IF NOT EXISTS comment_json AS
  SELECT ticket, id, json_object('author', json(author), 'at', at, 'text', text) AS json FROM comment;
CREATE VIEW IF NOT EXISTS attachment_json AS
  SELECT ticket, name, json_object(
    'name', name, 'media_type', media_type, 'size', length(content),
    'uri', 'desk://tickets/' || ticket || '/attachments/' || name
  ) AS json FROM attachment;
CREATE VIEW IF NOT EXISTS ticket_json AS
  SELECT id, status, priority, json_object(
    'id', id, 'subject', subject, 'description', description, 'status', status, 'priority', priority,
    'reporter', json(reporter), 'assignee', json(assignee), 'created', created, 'resolution', resolution,
    'comments', (SELECT json_group_array(json(json)) FROM comment_json WHERE ticket = ticket.id),
    'attachments', (SELECT json_group_array(json(json)) FROM attachment_json WHERE ticket = ticket.id)
  ) AS json FROM ticket;
