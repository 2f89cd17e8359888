-- Grams of three characters are too frequent among ten million persons: each of an id in hexadecimal
-- stands in 80,000 of them. A gram has five characters now, or four if one of these is a digit (all
-- four-digit combinations are about as frequent as each other, and five would make the index larger).
--
-- The index is built again, which takes about three minutes a million persons; requests that create
-- or change persons wait for it.
drop index person_search_grams;

alter table search_shares drop constraint search_shares_gram_check;
alter table search_shares add constraint search_shares_gram_check
  check (char_length(gram) between 1 and 5);
delete from search_shares;
update search_segments set sampled = false;

-- Whether it is a gram as the index has it, and not only the beginning of one.
create function search_gram_is_whole(gram text) returns boolean
  language sql immutable strict parallel safe
  return length(gram) = 5 or length(gram) = 4 and gram ~ '[0-9]';

-- The grams of a text as the index holds them. The last characters of a field begin shorter ones, so
-- that every piece is the beginning of some gram.
create or replace function search_lexemes(project_id integer, segment integer, text text) returns tsvector
  language plpgsql immutable strict parallel safe cost 100000 as $$
declare
  place constant text := project_id || ':' || segment || ':';
  field text;
  has_digits boolean;
  lexemes text[];
  count integer := 0;
begin
  foreach field in array string_to_array(text, U&'\FFFF') loop
    has_digits := field ~ '[0-9]';
    for i in 1..length(field) loop
      count := count + 1;
      lexemes[count] := place || substr(
        field, i, case when has_digits and substr(field, i, 4) ~ '[0-9]' then 4 else 5 end);
    end loop;
  end loop;
  return array_to_tsvector(lexemes);
end $$;

create index person_search_grams on person_search
  using gin (search_lexemes(project_id, segment, text))
  with (fastupdate = on, gin_pending_list_limit = 64)
  where segment > 0;

-- As before, with these grams.
create or replace function search_persons(
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
  -- As many of the rarest ones find about as few rows as all of them would.
  most_grams constant integer := 3;
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
    -- The grams that the fewest persons have. A term that has none whole is the beginning of one.
    select array_agg(g.gram), coalesce(min(g.share), 1) into grams, share
    from (
      select t.gram, t.share, min(t.share) over () as least,
             -- Those that share no character first: each tells something of its own.
             row_number() over (
               order by t.share, (length(term) - t.place) % 4, t.place desc) as rank
      from (
        select p.gram, max(p.place) as place, coalesce((
          select s.share from search_shares s
          where s.project_id = in_project_id and s.gram = p.gram), 0) as share
        from (
          select c.gram, c.place, search_gram_is_whole(c.gram) as is_whole,
                 bool_or(search_gram_is_whole(c.gram)) over () as has_whole
          from (
            select substr(term, i, case when substr(term, i, 4) ~ '[0-9]' then 4 else 5 end) as gram,
                   i as place
            from generate_series(1, length(term)) i) c) p
        where p.is_whole or not p.has_whole and p.place = 1
        group by 1, 3) t) g
    -- Where even the rarest one is frequent, mostly the same persons have the others.
    where g.rank <= case when g.least < 0.01 then most_grams else 1 end
      and g.share <= 10 * greatest(g.least, least_share);

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
      segments, first_ids, persons, grams);
  end if;
  return query
    select unnest(newest)
    union all
    (select id from unnest(scanned || indexed) id order by id desc limit page);
end $$;

drop function search_segments_for(
  integer, text, bigint, bigint, integer, integer, integer,
  integer[], bigint[], integer[], text[], real);

-- Returns at least the `page` highest ids between `above` and `below` that stand in the segments, in
-- no order. Reads one segment after the other, the newest first, until these are found.
create or replace function search_segments_for(
  in_project_id integer, term text, below bigint, above bigint, page integer,
  newest_rows integer, most_rows integer,
  segments integer[], first_ids bigint[], persons integer[], grams text[]
) returns bigint[] language plpgsql stable as $$
declare
  -- The lexemes of one segment, joined; U+FFFF stands for its number.
  query_of_segment constant text := (
    select string_agg(
      '''' || in_project_id || U&':\FFFF:' || replace(replace(g.gram, '\', '\\'), '''', '''''')
        || case when search_gram_is_whole(g.gram) then '''' else ''':*' end, '&')
    from unnest(grams) as g(gram));
  queries constant text[] := array(
    select replace(query_of_segment, U&'\FFFF', s.segment::text)
    from unnest(segments) as s(segment));
  place integer := 1;
  first_place integer;
  match record;
  -- With more matches than these in a segment, its newest rows are read first: they are likely to
  -- fill the page. Both numbers grow with the segment so that a wrong guess takes about as long.
  most integer;
  is_frequent boolean;
  these bigint[];
  found bigint[] := '{}';
begin
  loop
    first_place := place;
    most := least(most_rows, sqrt(6 * persons[place]));
    is_frequent := false;
    these := '{}';
    -- The additions keep the planner from looking into the primary key as well, and the offset from
    -- going through the whole index once for all segments.
    for match in
      select first_place + q.place - 1 as place, m.person_id
      from unnest(queries[first_place:]) with ordinality q(query, place)
      cross join lateral (
        select s.person_id from person_search s
        where search_lexemes(s.project_id, s.segment, s.text) @@ q.query::tsquery and s.segment > 0
          and s.project_id + 0 = in_project_id and s.person_id + 0 < below
          and strpos(s.text, term) > 0
        offset 0) m
    loop
      if match.place > place then
        found := found || these;
        these := '{}';
        if cardinality(found) >= page or first_ids[match.place - 1] <= above then
          return found;
        end if;
        place := match.place;
        most := least(most_rows, sqrt(6 * persons[place]));
      end if;
      these := these || match.person_id;
      is_frequent := cardinality(these) > most;
      exit when is_frequent;
    end loop;
    if not is_frequent then
      return found || these;
    end if;

    these := array(
      select n.person_id from (
        select s.person_id, s.text, s.segment from person_search s
        where s.project_id = in_project_id and s.person_id >= first_ids[place]
          and s.person_id < least(below, first_ids[place - 1])
        order by s.person_id desc limit greatest(newest_rows, sqrt(190 * persons[place]))) n
      where n.segment > 0 and strpos(n.text, term) > 0
      limit page - cardinality(found));
    if cardinality(these) < page - cardinality(found) then
      these := array(
        select s.person_id from person_search s
        where search_lexemes(s.project_id, s.segment, s.text) @@ queries[place]::tsquery
          and s.segment > 0
          and s.project_id + 0 = in_project_id and s.person_id + 0 < below
          and strpos(s.text, term) > 0
        order by s.person_id desc limit page - cardinality(found));
    end if;
    found := found || these;
    place := place + 1;
    if cardinality(found) >= page or place > cardinality(segments)
       or first_ids[place - 1] <= above then
      return found;
    end if;
  end loop;
end $$;

-- As before, with three times as many segments in a large project: those in which the text is frequent
-- are the ones that take long.
create or replace function search_index_part(
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
    select sum(s.persons) / 96 from search_segments s where s.project_id = in_project_id));
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

-- As before, with these grams.
create or replace function search_estimate_shares(in_project_id integer, rows integer) returns boolean
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
    cross join generate_series(1, 5) as size
    cross join lateral generate_series(1, length(field.text) - size + 1) as i
  )
  select in_project_id, g.gram, count(*)::real / (select count(*) from sample)
  from grams g group by g.gram having count(*) >= 3;
  return true;
end $$;
