-- What a project decides for its recordings.
alter table projects
  add column retention_days integer not null default 30 check (retention_days between 1 and 3650),
  add column masking text not null default 'balanced'
    check (masking in ('open', 'balanced', 'strict')),
  add column sample_rate real not null default 1 check (sample_rate between 0 and 1),
  -- Where set, identify has to carry the HMAC-SHA256 of the userId under this secret.
  add column identify_secret text;

-- The origins a public key may be used from; null: any.
alter table keys add column allowed_origins text[];

-- A browser of a visitor, as the server gave it out. A retired one takes no session, chunk or
-- identify any more. Retirement leaves no time and no job behind: either would tie sessions that
-- are kept to the person they are kept anonymous from.
create table browsers (
  project_id integer not null references projects,
  id         uuid not null default gen_random_uuid(),
  created_at timestamptz(3) not null default app_now(),
  retired    boolean not null default false,
  primary key (project_id, id)
);

-- Whose a browser is: at most one person's, ever.
create table person_browsers (
  project_id integer not null,
  browser_id uuid not null,
  person_id  bigint not null,
  linked_at  timestamptz(3) not null default app_now(),
  primary key (project_id, browser_id),
  foreign key (project_id, browser_id) references browsers,
  foreign key (project_id, person_id) references persons
);
create index person_browsers_by_person on person_browsers (project_id, person_id);

create table sessions (
  project_id    integer not null,
  id            uuid not null default gen_random_uuid(),
  browser_id    uuid not null,
  started_at    timestamptz(3) not null default app_now(),
  -- When its last chunk was stored.
  last_chunk_at timestamptz(3),
  chunks        integer not null default 0,
  -- As stored: compressed and sealed.
  bytes         bigint not null default 0,
  pages         integer not null default 0,
  -- Where it started, as the SDK masked it, and with what.
  url           text,
  user_agent    text,
  sdk_version   text,
  primary key (project_id, id),
  foreign key (project_id, browser_id) references browsers
);
create index sessions_by_browser on sessions (project_id, browser_id, started_at desc, id desc);
create index sessions_by_time on sessions (project_id, started_at desc, id desc);

-- An upload is intent, put, confirm: the database knows of every blob before it exists. The intent
-- is the permission to confirm; a dead one is never confirmed, whatever any clock does.
create table chunks (
  project_id   integer not null,
  session_id   uuid not null,
  tab          text collate "C" not null,
  number       integer not null check (number >= 0),
  blob_key     text collate "C" not null,
  state        text not null default 'intent' check (state in ('intent', 'stored', 'dead')),
  intent_until timestamptz(3) not null,
  stored_at    timestamptz(3),
  -- As stored: compressed and sealed.
  bytes        integer,
  primary key (project_id, session_id, tab, number),
  foreign key (project_id, session_id) references sessions,
  check ((state = 'stored') = (stored_at is not null and bytes is not null))
);
create unique index chunks_by_blob_key on chunks (project_id, blob_key);
create index chunks_open on chunks (intent_until) where state <> 'stored';
