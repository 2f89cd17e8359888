alter table browsers
  -- An erasure with the recordings has begun at this browser, so its key may be destroyed.
  add column removal_begun boolean not null default false,
  -- Its chunks and blobs were compared, and its blobs may be deleted.
  add column removal_counted boolean not null default false;

-- The last deletion of a person that failed: what it had destroyed is told by the next one.
alter table persons add column failed_job_id uuid;
alter table deletion_jobs add column earlier_job_id uuid;
