-- Members: the people of the customer who sign in to the dashboard. The tables of the schema auth
-- are those of better-auth under our names (a test asks it whether it finds them as it needs them),
-- and links, limits.
create schema auth;

create table auth.members (
  id                 uuid primary key default gen_random_uuid(),
  name               text not null check (char_length(name) between 1 and 200),
  -- In lower case, as better-auth looks it up.
  email              text not null unique check (email = lower(email)),
  email_verified     boolean not null default false,
  image              text,
  created_at         timestamptz(3) not null default app_now(),
  updated_at         timestamptz(3) not null default app_now(),
  has_second_factor  boolean not null default false,
  role               text not null check (role in ('owner', 'admin', 'member', 'viewer')),
  -- A permission of its own beside the role.
  may_delete_persons boolean not null,
  last_sign_in_at    timestamptz(3),
  check (role <> 'owner' or may_delete_persons)
);

-- Where a member is signed in.
create table auth.sign_ins (
  id         uuid primary key default gen_random_uuid(),
  expires_at timestamptz(3) not null,
  token      text not null unique,
  created_at timestamptz(3) not null default app_now(),
  updated_at timestamptz(3) not null default app_now(),
  address    text,
  user_agent text,
  member_id  uuid not null references auth.members on delete cascade
);
create index sign_ins_by_member on auth.sign_ins (member_id);
create index sign_ins_by_end on auth.sign_ins (expires_at);

-- By what a member signs in: a password (its hash) now, other providers later.
create table auth.credentials (
  id                       uuid primary key default gen_random_uuid(),
  account_id               text not null,
  provider_id              text not null,
  member_id                uuid not null references auth.members on delete cascade,
  access_token             text,
  refresh_token            text,
  id_token                 text,
  access_token_expires_at  timestamptz(3),
  refresh_token_expires_at timestamptz(3),
  scope                    text,
  password                 text,
  created_at               timestamptz(3) not null default app_now(),
  updated_at               timestamptz(3) not null default app_now(),
  unique (provider_id, account_id)
);
create index credentials_by_member on auth.credentials (member_id);

-- What better-auth remembers between two requests: a sign-in that waits for its code.
create table auth.verifications (
  id         uuid primary key default gen_random_uuid(),
  identifier text not null,
  value      text not null,
  expires_at timestamptz(3) not null,
  created_at timestamptz(3) not null default app_now(),
  updated_at timestamptz(3) not null default app_now()
);
create index verifications_by_identifier on auth.verifications (identifier);
create index verifications_by_end on auth.verifications (expires_at);

-- Both texts are encrypted with a secret that is not in the database in the clear.
create table auth.second_factors (
  id             uuid primary key default gen_random_uuid(),
  secret         text not null,
  recovery_codes text not null,
  member_id      uuid not null references auth.members on delete cascade,
  verified       boolean,
  failures       integer,
  locked_until   timestamptz(3)
);
create index second_factors_by_secret on auth.second_factors (secret);
create index second_factors_by_member on auth.second_factors (member_id);

-- One-time links: the first owner, an invitation, a password set anew. Only the SHA-256 of a token
-- is kept; a link that was used or withdrawn is deleted.
create table auth.links (
  id                 uuid primary key default gen_random_uuid(),
  token_hash         bytea not null unique check (octet_length(token_hash) = 32),
  kind               text not null check (kind in ('set_up', 'invitation', 'reset')),
  member_id          uuid references auth.members on delete cascade,
  email              text check (email = lower(email)),
  role               text check (role in ('owner', 'admin', 'member', 'viewer')),
  may_delete_persons boolean,
  created_at         timestamptz(3) not null default app_now(),
  expires_at         timestamptz(3) not null,
  check ((kind = 'reset') = (member_id is not null)),
  check ((kind = 'invitation') = (email is not null)),
  check ((kind = 'invitation') = (role is not null)),
  check ((kind = 'invitation') = (may_delete_persons is not null))
);
create unique index links_one_invitation_an_email on auth.links (email) where kind = 'invitation';
create unique index links_one_reset_a_member on auth.links (member_id) where kind = 'reset';

-- Tries of passwords, codes and links, counted by address and by member for all processes.
create table auth.limits (
  -- SHA-256 of what is counted: neither addresses nor e-mails stand here.
  bucket  bytea primary key check (octet_length(bucket) = 32),
  tries   integer not null,
  ends_at timestamptz(3) not null
);
create index limits_by_end on auth.limits (ends_at);

-- A secret of this installation, wrapped by a master key as a browser's data key is, so that a copy
-- of the database alone can neither forge a sign-in nor sign a webhook.
create table auth.secrets (
  only_row      boolean primary key default true check (only_row),
  master_key_id text not null,
  wrapped       bytea not null
);

-- A public key stands in every page that records, so its text may be shown again; a secret key's
-- is kept nowhere.
alter table keys
  add column public_text text collate "C",
  add constraint keys_no_secret_text check (public_text is null or kind = 'public');

-- What members did. Ids, names of settings and plain facts; no property, no e-mail of a person.
create table audit_log (
  id           bigint primary key generated always as identity,
  at           timestamptz(3) not null default app_now(),
  action       text collate "C" not null check (action ~ '^[a-z_]+\.[a-z_]+$'),
  -- No foreign key: what a member did stays when the member is removed.
  member_id    uuid,
  -- null: it concerns no single project.
  project_id   integer references projects,
  subject_kind text collate "C",
  -- null with a kind: a person that was erased since.
  subject_id   text collate "C",
  details      jsonb not null default '{}' check (jsonb_typeof(details) = 'object'),
  check (subject_id is null or subject_kind is not null)
);
create index audit_log_by_project on audit_log (project_id, id desc);
create index audit_log_by_member on audit_log (member_id, id desc);
create index audit_log_of_persons on audit_log (project_id, subject_id)
  where subject_kind = 'person' and subject_id is not null;

-- Which internal ids were erased by which job, so that the page of an erased person says so. The id
-- itself is not kept: it tells when the person was created. Who has the page's address can be told
-- that the person is gone; who has this table learns nothing that the job does not say.
create table erased_persons (
  project_id  integer not null,
  person_hash bytea not null check (octet_length(person_hash) = 32),
  job_id      uuid not null,
  primary key (project_id, person_hash),
  foreign key (project_id, job_id) references deletion_jobs
);

create function erased_person_hash(in_project_id integer, in_person_id bigint) returns bytea
  language sql stable as $$
  select sha256(cursor_key || sha256(
    cursor_key || convert_to('erased person ' || in_project_id || ' ' || in_person_id, 'UTF8')))
  from instance
$$;

create table webhooks (
  project_id       integer not null references projects,
  id               uuid not null default gen_random_uuid(),
  url              text not null check (char_length(url) between 1 and 2000),
  events           text[] not null check (
    events <@ array['person.deletion.completed', 'person.deletion.failed'] and events <> '{}'),
  is_enabled       boolean not null default true,
  -- What deliveries are signed with is derived from the installation's secret and this number.
  secret_version   integer not null default 1 check (secret_version > 0),
  -- Until then the secret before this one signs too.
  old_secret_until timestamptz(3),
  created_at       timestamptz(3) not null default app_now(),
  primary key (project_id, id)
);

-- One event for one webhook. What is sent is made of the job's row, which stays and changes no more;
-- nothing of it is copied here.
create table webhook_deliveries (
  project_id      integer not null,
  id              uuid not null default gen_random_uuid(),
  webhook_id      uuid not null,
  event           text collate "C" not null,
  -- null: a test.
  job_id          uuid,
  created_at      timestamptz(3) not null default app_now(),
  state           text not null default 'pending'
                  check (state in ('pending', 'delivered', 'failed')),
  attempts        integer not null default 0,
  next_attempt_at timestamptz(3) default app_now(),
  lease_token     uuid,
  lease_until     timestamptz(3),
  ended_at        timestamptz(3),
  last_status     integer,
  last_error_code text collate "C" check (last_error_code ~ '^[a-z0-9_]{1,60}$'),
  primary key (project_id, id),
  foreign key (project_id, webhook_id) references webhooks on delete cascade,
  foreign key (project_id, job_id) references deletion_jobs,
  check ((job_id is null) = (event = 'webhook.test')),
  check ((state = 'pending') = (ended_at is null)),
  check ((state = 'pending') = (next_attempt_at is not null)),
  check ((lease_token is null) = (lease_until is null))
);
create index webhook_deliveries_due on webhook_deliveries (next_attempt_at)
  where state = 'pending';
create index webhook_deliveries_by_webhook
  on webhook_deliveries (project_id, webhook_id, created_at desc, id desc);
create index webhook_deliveries_by_end on webhook_deliveries (ended_at) where state <> 'pending';

-- What follows of the end of a job, in the transaction that ends it: the events for the webhooks,
-- and of a completed one the way from the person's page to the job. The audit log forgets the
-- person's id.
create function deletion_job_ended() returns trigger language plpgsql as $$
begin
  insert into webhook_deliveries (project_id, webhook_id, event, job_id)
  select new.project_id, w.id, 'person.deletion.' || new.status, new.id
  from webhooks w
  where w.project_id = new.project_id and w.is_enabled
    and 'person.deletion.' || new.status = any (w.events);

  if new.status = 'completed' and old.person_id is not null then
    insert into erased_persons (project_id, person_hash, job_id)
    values (new.project_id, erased_person_hash(new.project_id, old.person_id), new.id)
    -- Who was brought back by a restored backup is erased a second time.
    on conflict (project_id, person_hash) do update set job_id = excluded.job_id;
    update audit_log set subject_id = null
    where project_id = new.project_id and subject_kind = 'person'
      and subject_id = old.person_id::text;
  end if;
  return null;
end $$;
create trigger deletion_jobs_ended after update of status on deletion_jobs
  for each row
  when (old.status is distinct from new.status and new.status in ('completed', 'failed'))
  execute function deletion_job_ended();

-- When any worker of erasures last looked for work.
create table worker_seen (
  only_row boolean primary key default true check (only_row),
  at       timestamptz(3)
);
insert into worker_seen default values;

-- The persons whose last deletion failed and who are still there, with that job. A person does not
-- lead to a failed job: they have the externalId in common, and the job is younger than the person.
create function failed_deletions(in_project_id integer)
  returns table (person_id bigint, job_id uuid)
  language sql stable as $$
  select p.id, j.id
  from (
    select distinct on (external_id) external_id, id, created_at
    from deletion_jobs
    where project_id = in_project_id and status = 'failed'
    order by external_id, created_at desc, id desc
  ) j
  join persons p on p.project_id = in_project_id and p.external_id = j.external_id
  where p.deletion_job_id is null and p.created_at <= j.created_at
$$;

-- An instant inside of JSON, as the API writes it: 2026-11-27T22:58:33.120Z.
create function instant_text(instant timestamptz) returns text
  language sql stable as $$
  select to_char(instant at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')
$$;
