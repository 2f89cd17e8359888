-- A deletion flags its person and nothing else, however many browsers the person has. From then on
-- the flag keeps the person's browsers from recording; the worker retires them, in parts.

-- The browsers of a person are read in parts, by their ids.
create index person_browsers_of_person on person_browsers (project_id, person_id, browser_id);
drop index person_browsers_by_person;

-- Browsers whose last session may be gone. The retention looks at them again.
alter table browsers add column to_check boolean not null default false;
create index browsers_to_check on browsers (project_id, id) where to_check;
update browsers b set to_check = true
where not exists (select from sessions s where s.project_id = b.project_id and s.browser_id = b.id);

-- Records the intent to upload a chunk, before its blob exists. `outcome` is
--   intended: go on, with 60 seconds to confirm;
--   stored: an earlier upload of this chunk is there already;
--   in_flight: another upload of it may still be confirmed;
--   dead: an earlier upload ended without one; its blob (`dead_blob_key`) has to go, then its row;
--   refused: the browser is unknown or retired, its person is being deleted, or the session takes
--     no chunks of it.
--
-- The browser is locked against retirement, and the session against being closed; a foreign key's
-- own lock would let both pass. The person is not locked: an intent that overlaps with a DELETE is
-- committed before the browser is retired, and is erased with it.
create or replace function chunk_intend(
  in_project_id integer, in_browser_id uuid, in_session_id uuid,
  in_tab text, in_number integer, in_blob_key text,
  out outcome text, out dead_blob_key text
) language plpgsql as $$
declare
  known chunks;
begin
  perform from browsers b
  where b.project_id = in_project_id and b.id = in_browser_id and not b.retired
    and not exists (
      select from person_browsers l
      join persons p on p.project_id = l.project_id and p.id = l.person_id
      where l.project_id = b.project_id and l.browser_id = b.id and p.deletion_job_id is not null)
  for share;
  if not found then
    outcome := 'refused';
    return;
  end if;

  -- A session records for a day at most. A week more is for what a browser without a network kept.
  perform from sessions s
  where s.project_id = in_project_id and s.id = in_session_id and s.browser_id = in_browser_id
    and not s.closed and s.started_at > app_now() - interval '8 days'
  for share;
  if not found then
    outcome := 'refused';
    return;
  end if;

  insert into chunks (project_id, session_id, tab, number, blob_key, intent_until)
  values (
    in_project_id, in_session_id, in_tab, in_number, in_blob_key,
    app_now() + interval '60 seconds')
  on conflict (project_id, session_id, tab, number) do nothing;
  if found then
    outcome := 'intended';
    return;
  end if;

  select * into known from chunks c
  where c.project_id = in_project_id and c.session_id = in_session_id
    and c.tab = in_tab and c.number = in_number
  for update;
  if known.state = 'stored' then
    outcome := 'stored';
  elsif known.state = 'intent' and known.intent_until > app_now() then
    outcome := 'in_flight';
  elsif known.state is not null then
    update chunks c set state = 'dead'
    where c.project_id = in_project_id and c.session_id = in_session_id
      and c.tab = in_tab and c.number = in_number;
    outcome := 'dead';
    dead_blob_key := known.blob_key;
  else
    -- It was collected between the two statements.
    outcome := 'in_flight';
  end if;
end $$;
