-- What members wrote at moments of a recording. It may say anything of whom the recording shows, so it
-- goes with the recording, and with the person where the recording is kept.
create table session_notes (
  project_id      integer not null,
  id              uuid not null default gen_random_uuid(),
  session_id      uuid not null,
  -- Milliseconds since the recording's beginning.
  at_milliseconds integer not null check (at_milliseconds between 0 and 93600000),
  text            text not null check (char_length(text) between 1 and 2000),
  -- No foreign key: what a member wrote stays when the member is removed.
  member_id       uuid not null,
  created_at      timestamptz(3) not null default app_now(),
  primary key (project_id, id),
  foreign key (project_id, session_id) references sessions on delete cascade
);
create index session_notes_by_session on session_notes (project_id, session_id, at_milliseconds, id);

-- Whoever writes one has locked the browser as one that is not retired, so after the retirement that
-- an erasure begins with there come no more, and what is deleted here is all of them.
create function session_notes_of_nobody() returns trigger language plpgsql as $$
begin
  delete from session_notes n
  using gone g, sessions s
  where s.project_id = g.project_id and s.browser_id = g.browser_id
    and n.project_id = s.project_id and n.session_id = s.id;
  return null;
end $$;
create trigger person_browsers_notes after delete on person_browsers
  referencing old table as gone
  for each statement
  execute function session_notes_of_nobody();
