-- Browsers that were discarded without a deletion job, because their visitor withdrew or their person has too many. Each
-- is named in the ledger, so that a restored backup brings none back; the row goes after its browser.

create table withdrawals (
  project_id integer not null references projects,
  browser_id uuid not null,
  entry_id   uuid,
  is_entered boolean not null default false,
  primary key (project_id, browser_id),
  check (entry_id is not null or not is_entered)
);

-- An entry of withdrawals has an id of its own and no job.
alter table ledger_entries drop constraint ledger_entries_project_id_job_id_fkey;
