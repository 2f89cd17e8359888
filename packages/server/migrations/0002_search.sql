-- How the search finds a text among millions of persons without reading them all.
--
-- A gram is up to three characters that follow each other in one field. The rows of person_search
-- are given, by a background step, to segments: disjoint ranges of ids of one project. The index
-- holds `project:segment:gram` for every gram of a row, so one segment can be asked for the rows
-- that have all the grams of a term, and the segments are walked from the newest to the oldest
-- until a page is full. Rows that stand in no segment yet (the tail) are scanned, and so is the
-- whole of a small project. What the index answers is compared with the text itself: the index
-- decides only how fast a row is found, never whether it is.

-- A segment covers the ids from its first_id up to that of the next segment of the project; the
-- first one of a project begins at 0, the last one has no end. So every id has one segment, and a
-- row belongs to that of its id whenever it comes.
create table search_segments (
  project_id integer not null references projects,
  segment    integer not null check (segment > 0),
  first_id   bigint not null check (first_id >= 0),
  -- The highest id a row of the segment has had: the next segment begins above it.
  last_id    bigint not null,
  -- How many rows it was given. Never counted down: it decides when a segment is full.
  persons    integer not null default 0,
  -- Whether the shares of the grams were estimated while this was the newest segment.
  sampled    boolean not null default false,
  primary key (project_id, segment),
  unique (project_id, first_id)
);

-- In which share of a project's persons a gram occurs, estimated from a sample. Only grams that
-- several persons of the sample have are kept, so what stands here leads to nobody.
create table search_shares (
  project_id integer not null references projects,
  gram       text collate "C" not null check (char_length(gram) between 1 and 3),
  share      real not null check (share > 0 and share <= 1),
  primary key (project_id, gram)
);

-- The grams of a text as the index holds them. Each character but the last two of a field begins
-- a gram of three; the last two begin shorter ones, so that every piece of one or two characters
-- is the beginning of some gram.
--
-- The cost keeps the planner from calling it for rows that the index could have told it.
create function search_lexemes(project_id integer, segment integer, text text) returns tsvector
  language plpgsql immutable strict parallel safe cost 100000 as $$
declare
  place constant text := project_id || ':' || segment || ':';
  field text;
  lexemes text[];
  count integer := 0;
begin
  foreach field in array string_to_array(text, U&'\FFFF') loop
    for i in 1..length(field) loop
      count := count + 1;
      lexemes[count] := place || substr(field, i, 3);
    end loop;
  end loop;
  return array_to_tsvector(lexemes);
end $$;

-- Only the background step writes here: requests leave rows without a segment. The index gathers
-- what it is given in a short list first, which makes that step more than twice as fast; a search
-- has to read the list, so it is kept short and emptied at the end of each part.
create index person_search_grams on person_search
  using gin (search_lexemes(project_id, segment, text))
  with (fastupdate = on, gin_pending_list_limit = 64)
  where segment > 0;

-- The rows the search has to scan: the tail (null), and those whose text is too long for the
-- index (0), which no index step looks at again until their text changes.
create index person_search_scanned on person_search (project_id, person_id)
  where coalesce(segment, 0) = 0;

-- Every row is written twice, once by a request and once by the background step.
alter table person_search set (
  autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.05);

-- The ids of up to `page` persons below `before_id` that have `term` (folded), the newest first.
-- `newest_rows` and `most_rows` decide only how it goes about it: how many rows it reads from the
-- newest on in the hope of a frequent text, and how many matches of a segment it gathers, out of
-- their order, before it tries that.
--
-- Stable, so all its statements see one snapshot: that of the statement that calls it. The
-- settings hold each statement to the one plan it was written for, whatever the statistics say.
create function search_persons(
  in_project_id integer, term text, before_id bigint, page integer,
  newest_rows integer, most_rows integer
) returns setof bigint language plpgsql stable rows 50
  set enable_seqscan = off
  set enable_sort = off
  set jit = off
  set max_parallel_workers_per_gather = 0
  set work_mem = '16MB'
  set plan_cache_mode = force_generic_plan
as $$
declare
  -- What the sample did not see at all may still be as frequent as this.
  least_share constant real := 0.0015;
  -- The rarest ones find about as few rows as all of them would. As many of those the sample did
  -- not see are taken besides, from the end of the term, for some of these may be frequent among
  -- the newest persons, as the beginnings of ids that count up are.
  most_grams constant integer := 4;
  below bigint := coalesce(before_id, 9223372036854775807);
  above bigint := -1;
  segments integer[];
  first_ids bigint[];
  persons integer[];
  grams text[];
  share real;
  newest bigint[] := '{}';
  scanned bigint[];
  indexed bigint[] := '{}';
begin
  select array_agg(s.segment), array_agg(s.first_id), array_agg(s.persons)
  into segments, first_ids, persons
  from (
    select g.segment, g.first_id, g.persons from search_segments g
    where g.project_id = in_project_id and g.first_id < below
    order by g.first_id desc) s;

  if segments is not null then
    -- The grams that the fewest persons have; a term of one or two characters is its own gram.
    select array_agg(g.gram), coalesce(min(g.share), 1) into grams, share
    from (
      select t.gram, t.share, min(t.share) over () as least,
             row_number() over (
               partition by t.share = 0 order by t.share, t.place desc) as rank
      from (
        select substr(term, i, 3) as gram, max(i) as place, coalesce((
          select s.share from search_shares s
          where s.project_id = in_project_id and s.gram = substr(term, i, 3)), 0) as share
        from generate_series(1, greatest(1, length(term) - 2)) i
        where term <> ''
        group by 1, 3) t) g
    where g.rank <= most_grams and g.share <= 10 * greatest(g.least, least_share);

    -- A frequent text fills the page from the newest rows, whether they are indexed or not.
    if share * newest_rows >= page * 2 then
      newest := array(
        select n.person_id from (
          select s.person_id, s.text from person_search s
          where s.project_id = in_project_id and s.person_id < below
          order by s.person_id desc limit newest_rows) n
        where strpos(n.text, term) > 0 limit page);
      if cardinality(newest) < page then
        below := (
          select s.person_id from person_search s
          where s.project_id = in_project_id and s.person_id < below
          order by s.person_id desc offset newest_rows - 1 limit 1);
      end if;
      if cardinality(newest) = page or below is null then
        return query select unnest(newest);
        return;
      end if;
      page := page - cardinality(newest);
    end if;
  end if;

  scanned := array(
    select s.person_id from person_search s
    where s.project_id = in_project_id and s.person_id < below
      and coalesce(s.segment, 0) = 0 and strpos(s.text, term) > 0
    order by s.person_id desc limit page);
  if cardinality(scanned) = page then
    above := scanned[page];
  end if;

  if segments is not null then
    indexed := search_segments_for(
      in_project_id, term, below, above, page, newest_rows, most_rows,
      segments, first_ids, persons, grams, greatest(share, least_share));
  end if;
  return query
    select unnest(newest)
    union all
    (select id from unnest(scanned || indexed) id order by id desc limit page);
end $$;

-- Walks segments, the newest first, until `page` ids were found. Answers at least the `page`
-- highest ids between `above` and `below` that stand in them, in no order.
create function search_segments_for(
  in_project_id integer, term text, below bigint, above bigint, page integer,
  newest_rows integer, most_rows integer,
  segments integer[], first_ids bigint[], persons integer[], grams text[], share real
) returns bigint[] language plpgsql stable as $$
declare
  -- Several segments are looked through at once while the rarest gram has few rows in them; with
  -- more, the index takes longer to tell them apart than it takes to be asked once for each.
  look_rows real := most_rows / 5.0 / share;
  -- The lexemes of one segment, joined; U+FFFF stands for its number.
  query_of_segment constant text := (
    select string_agg(
      '''' || in_project_id || U&':\FFFF:' || replace(replace(g.gram, '\', '\\'), '''', '''''')
        || case when length(g.gram) < 3 then ''':*' else '''' end, '&')
    from unnest(grams) as g(gram));
  query text;
  most integer := most_rows + 1;
  place integer := 1;
  next integer;
  rows real;
  found bigint[] := '{}';
  these bigint[];
begin
  while place <= cardinality(segments) and cardinality(found) < page loop
    exit when first_ids[place - 1] <= above;
    query := replace(query_of_segment, U&'\FFFF', segments[place]::text);
    next := place + 1;
    rows := persons[place];
    while rows + persons[next] <= look_rows loop
      query := query || '|' || replace(query_of_segment, U&'\FFFF', segments[next]::text);
      rows := rows + persons[next];
      next := next + 1;
    end loop;

    -- The additions keep the planner from looking into the primary key as well.
    these := array(
      select s.person_id from person_search s
      where search_lexemes(s.project_id, s.segment, s.text) @@ query::tsquery and s.segment > 0
        and s.project_id + 0 = in_project_id and s.person_id + 0 < below
        and strpos(s.text, term) > 0
      limit most);
    if cardinality(these) > most_rows and most is not null then
      if next > place + 1 then
        look_rows := 0;
        continue;
      end if;
      these := array(
        select n.person_id from (
          select s.person_id, s.text, s.segment from person_search s
          where s.project_id = in_project_id and s.person_id >= first_ids[place]
            and s.person_id < least(below, first_ids[place - 1])
          order by s.person_id desc limit newest_rows) n
        where n.segment > 0 and strpos(n.text, term) > 0
        limit page - cardinality(found));
      if cardinality(these) < page - cardinality(found) then
        most := null;
        continue;
      end if;
    end if;
    most := most_rows + 1;
    found := found || these;
    place := next;
  end loop;
  return found;
end $$;

-- Gives up to `part` rows of the project's tail their segment and answers how many it was. Another
-- process that is at this project, and rows another transaction holds, are passed over.
create function search_index_part(
  in_project_id integer, least_segment_persons integer, part integer, longest_text integer
) returns integer language plpgsql
  set enable_seqscan = off
  set enable_sort = off
  set jit = off
  set plan_cache_mode = force_generic_plan
as $$
declare
  newest search_segments;
  -- A large project has large segments, so that there are never very many of them.
  segment_persons constant integer := greatest(least_segment_persons, (
    select sum(s.persons) / 32 from search_segments s where s.project_id = in_project_id));
  ids bigint[];
begin
  if not pg_try_advisory_xact_lock(1279610952, in_project_id) then
    return 0;
  end if;
  select * into newest from search_segments s
  where s.project_id = in_project_id order by s.first_id desc limit 1;
  if newest.segment is null or newest.persons >= segment_persons then
    perform search_merge_segments(in_project_id, segment_persons);
    insert into search_segments (project_id, segment, first_id, last_id)
    values (
      in_project_id, coalesce(newest.segment, 0) + 1,
      coalesce(newest.last_id + 1, 0), coalesce(newest.last_id, 0))
    returning * into newest;
  end if;

  -- First those above all that are indexed: below them the index of the tail is full of rows that
  -- have left it, until the next vacuum. Then those that came late or were changed.
  part := least(part, segment_persons - newest.persons);
  ids := array(
    select s.person_id from person_search s
    where s.project_id = in_project_id and s.person_id > newest.last_id
      and coalesce(s.segment, 0) = 0 and s.segment is null
    order by s.person_id limit part for no key update skip locked);
  if cardinality(ids) < part then
    ids := ids || array(
      select s.person_id from person_search s
      where s.project_id = in_project_id and s.person_id <= newest.last_id
        and coalesce(s.segment, 0) = 0 and s.segment is null
      order by s.person_id limit part - cardinality(ids) for no key update skip locked);
  end if;

  with placed as (
    update person_search s
    set segment = case when length(s.text) > longest_text then 0 else (
      select c.segment from search_segments c
      where c.project_id = in_project_id and c.first_id <= s.person_id
      order by c.first_id desc limit 1) end
    where s.project_id = in_project_id and s.person_id = any (ids)
    returning s.person_id, s.segment
  )
  update search_segments s
  set persons = s.persons + p.persons, last_id = greatest(s.last_id, p.last_id)
  from (
    select p.segment, count(*)::integer as persons, max(p.person_id) as last_id
    from placed p group by p.segment) p
  where s.project_id = in_project_id and s.segment = p.segment;

  -- Where another role than ours has made the index, autovacuum does this.
  if pg_has_role((
    select c.relowner from pg_class c where c.oid = 'person_search_grams'::regclass), 'usage') then
    perform gin_clean_pending_list('person_search_grams');
  end if;
  return cardinality(ids);
end $$;

-- Joins a segment that has lost most of its persons with the one before it, so that a project where
-- persons come and go for years does not end up with thousands of nearly empty segments: its rows
-- go back to the tail, and from there to the segment that covers their ids then. Looks at a few
-- segments only, for it is called once for every new one.
create function search_merge_segments(in_project_id integer, segment_persons integer)
returns void language plpgsql
  set enable_seqscan = off
as $$
declare
  looked_at constant integer := 3;
  pair record;
  ids bigint[];
begin
  for pair in
    select s.older, s.segment, s.first_id, s.next_id, (
      select count(*) from person_search p
      where p.project_id = in_project_id
        and p.person_id >= s.older_first_id and p.person_id < s.next_id) as persons
    from (
      select g.segment, g.first_id,
             lag(g.segment) over by_id as older, lag(g.first_id) over by_id as older_first_id,
             lead(g.first_id) over by_id as next_id
      from search_segments g where g.project_id = in_project_id
      window by_id as (order by g.first_id)) s
    where s.older is not null and s.next_id is not null
    order by random() limit looked_at
  loop
    continue when pair.persons > segment_persons / 2;
    ids := array(
      select p.person_id from person_search p
      where p.project_id = in_project_id and p.person_id >= pair.first_id
        and p.person_id < pair.next_id and p.segment = pair.segment
      for no key update skip locked);
    -- A row that another transaction holds stays in its segment, so the segment stays too.
    continue when cardinality(ids) < (
      select count(*) from person_search p
      where p.project_id = in_project_id and p.person_id >= pair.first_id
        and p.person_id < pair.next_id and p.segment = pair.segment);
    update person_search p set segment = null
    where p.project_id = in_project_id and p.person_id = any (ids);
    delete from search_segments g
    where g.project_id = in_project_id and g.segment = pair.segment;
    update search_segments g set persons = pair.persons
    where g.project_id = in_project_id and g.segment = pair.older;
    return;
  end loop;
end $$;

-- Estimates the shares of grams anew when the project has a quarter more segments than at the
-- last estimate, from about `rows` rows: short runs of them at random places of every segment.
create function search_estimate_shares(in_project_id integer, rows integer) returns boolean
  language plpgsql
  set enable_seqscan = off
  set jit = off
  set max_parallel_workers_per_gather = 0
as $$
declare
  run constant integer := 20;
  -- Texts as long as this are few, and would take long to cut up.
  longest_text constant integer := 500;
  newest integer;
  begins bigint[];
begin
  if not pg_try_advisory_xact_lock(1279610952, in_project_id) then
    return false;
  end if;
  select max(s.segment) into newest from search_segments s where s.project_id = in_project_id;
  if newest is null or newest < 1.25 * (
    select max(s.segment) from search_segments s
    where s.project_id = in_project_id and s.sampled) then
    return false;
  end if;
  update search_segments s set sampled = true
  where s.project_id = in_project_id and s.segment = newest;

  begins := array(
    select (s.first_id + random() * (s.last_id - s.first_id))::bigint
    from (
      select greatest(g.first_id, (
               select min(p.person_id) from person_search p
               where p.project_id = in_project_id)) as first_id,
             g.last_id,
             rows::real / run * g.persons / sum(g.persons) over () as runs
      from search_segments g
      where g.project_id = in_project_id order by random() limit rows / run) s
    cross join generate_series(1, greatest(1, s.runs::integer)));

  delete from search_shares s where s.project_id = in_project_id;
  insert into search_shares (project_id, gram, share)
  with sample as materialized (
    select distinct r.person_id, r.text
    from unnest(begins) as b(first_id)
    cross join lateral (
      select s.person_id, s.text from person_search s
      where s.project_id = in_project_id and s.person_id >= b.first_id
      order by s.person_id limit run) r
    where length(r.text) <= longest_text
  ), grams as (
    select distinct t.person_id, substr(field.text, i, size) as gram
    from sample t
    cross join lateral unnest(string_to_array(t.text, U&'\FFFF')) as field(text)
    cross join generate_series(1, 3) as size
    cross join lateral generate_series(1, length(field.text) - size + 1) as i
  )
  select in_project_id, g.gram, count(*)::real / (select count(*) from sample)
  from grams g group by g.gram having count(*) >= 3;
  return true;
end $$;
