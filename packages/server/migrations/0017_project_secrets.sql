-- Secrets of projects, 32 bytes each, wrapped by a master key. `identity`: what signs the user ids of
-- identify, two at once while they are rotated. `suppression`: keys the hashes of erased persons.
create table project_secrets (
  project_id    integer not null references projects,
  id            uuid not null default gen_random_uuid(),
  purpose       text not null check (purpose in ('identity', 'suppression')),
  master_key_id text not null,
  wrapped       bytea not null,
  created_at    timestamptz(3) not null default app_now(),
  primary key (project_id, id)
);
create unique index project_secrets_one_suppression
  on project_secrets (project_id) where purpose = 'suppression';

-- Whether identify may bring an erased person back: the source lets it.
alter table projects add column suppresses_erased boolean not null default false;

-- HMAC-SHA256 of the externalIds of erased persons, for one purpose: identify makes no person of them.
-- Kept until the project lifts one or switches the list off, which deletes its key as well.
create table suppressions (
  project_id integer not null references projects,
  hash       bytea not null check (octet_length(hash) = 32),
  primary key (project_id, hash)
);
