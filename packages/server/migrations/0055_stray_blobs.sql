-- Blobs that no chunk knows of, since when: as an uploader leaves them that died, or a database that
-- went back in time. After a day they are deleted.
create table stray_blobs (
  project_id integer not null references projects,
  blob_key   text collate "C" not null,
  seen_at    timestamptz(3) not null default app_now(),
  primary key (project_id, blob_key)
);

-- When a project's blobs were last compared with its chunks, and how many chunks had no blob.
create table blob_comparisons (
  project_id  integer primary key references projects,
  begun_at    timestamptz(3) not null,
  lost_chunks bigint not null default 0 check (lost_chunks >= 0)
);
