-- Links to a moment of a recording, for people without an account. They end by themselves, with the
-- rights of their maker, with the recording, and with the person where the recording is kept.
create table session_links (
  project_id      integer not null,
  id              uuid not null default gen_random_uuid(),
  session_id      uuid not null,
  token_hash      bytea not null check (octet_length(token_hash) = 32),
  at_milliseconds integer not null check (at_milliseconds between 0 and 93600000),
  made_by         uuid not null,
  created_at      timestamptz(3) not null default app_now(),
  expires_at      timestamptz(3) not null,
  primary key (project_id, id),
  unique (project_id, token_hash),
  foreign key (project_id, session_id) references sessions on delete cascade
);
create index session_links_by_session on session_links (project_id, session_id);
create index session_links_by_maker on session_links (made_by);
create index session_links_by_end on session_links (expires_at);

-- As with notes: see session_notes_of_nobody.
create function session_links_of_nobody() returns trigger language plpgsql as $$
begin
  delete from session_links l
  using gone g, sessions s
  where s.project_id = g.project_id and s.browser_id = g.browser_id
    and l.project_id = s.project_id and l.session_id = s.id;
  return null;
end $$;
create trigger person_browsers_links after delete on person_browsers
  referencing old table as gone
  for each statement
  execute function session_links_of_nobody();
