-- What the browsers of a project sent in a day of UTC, as the processes add it up every few seconds:
-- bytes of chunks as sent, and requests that a limit refused.
create table ingest_usage (
  project_id integer not null references projects,
  day        date not null,
  bytes      bigint not null default 0,
  refused    bigint not null default 0,
  primary key (project_id, day)
);
