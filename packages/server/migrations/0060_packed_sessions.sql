-- The chunks of a finished session are packed into one blob, or a few. A pack is a row of `chunks`
-- like any other upload, of the tab '' that no page can name, so whatever takes chunks away takes
-- packs away. The rows of what was packed go; what has to be known of them is here.
alter table sessions
  -- Of each packed chunk: its tab and number, the number of its pack, where in it its bytes begin,
  -- how many they are, and when it was stored (milliseconds).
  add column packed jsonb,
  -- Whether chunks may have come since it was last looked at.
  add column is_unpacked boolean not null default true;

-- For the worker that looks for finished sessions.
create index sessions_unpacked on sessions (started_at, id) where is_unpacked;

-- As before, and a chunk that was packed already is `stored`.
create or replace function chunk_intend(
  in_project_id integer, in_browser_id uuid, in_session_id uuid,
  in_tab text, in_number integer, in_blob_key text,
  out outcome text, out dead_blob_key text
) language plpgsql as $$
declare
  known chunks;
  session_packed jsonb;
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
  -- Packs may be made of it at any time.
  select s.packed into session_packed from sessions s
  where s.project_id = in_project_id and s.id = in_session_id and s.browser_id = in_browser_id
    and not s.closed
    and s.started_at > case in_tab when '' then '-infinity' else app_now() end - interval '8 days'
  for share;
  if not found then
    outcome := 'refused';
    return;
  end if;

  if session_packed is not null and exists (
    select from jsonb_array_elements(session_packed) e
    where e ->> 0 = in_tab and (e ->> 1)::integer = in_number) then
    outcome := 'stored';
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
