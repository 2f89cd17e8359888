-- The data keys of browsers, each wrapped by a master key of the instance. They stand in a table,
-- and where KEY_DATABASE_URL says so in a database, of their own: destroying a row makes every copy
-- of that browser's blobs unreadable, and a database kept out of backups brings none back.
create table browser_keys (
  project_id    integer not null,
  browser_id    uuid not null,
  master_key_id text not null,
  wrapped       bytea not null,
  primary key (project_id, browser_id)
);
create index browser_keys_by_master_key on browser_keys (master_key_id);
