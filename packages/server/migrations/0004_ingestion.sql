-- A session that the retention is about to delete: it takes no chunk any more, so that what has to
-- go is a closed set, as retired browsers make it for an erasure.
alter table sessions add column closed boolean not null default false;
create index sessions_closed on sessions (project_id, id) where closed;

-- Records the intent to upload a chunk, before its blob exists. `outcome` is
--   intended: go on, with 60 seconds to confirm;
--   stored: an earlier upload of this chunk is there already;
--   in_flight: another upload of it may still be confirmed;
--   dead: an earlier upload ended without one; its blob (`dead_blob_key`) has to go, then its row;
--   refused: the browser is unknown or retired, or the session none that takes chunks of it.
--
-- The browser is locked against retirement, and the session against being closed; a foreign key's
-- own lock would let both pass.
create function chunk_intend(
  in_project_id integer, in_browser_id uuid, in_session_id uuid,
  in_tab text, in_number integer, in_blob_key text,
  out outcome text, out dead_blob_key text
) language plpgsql as $$
declare
  known chunks;
begin
  perform from browsers b
  where b.project_id = in_project_id and b.id = in_browser_id and not b.retired
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
