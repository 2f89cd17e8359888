-- Where many persons of one segment have a text and those of newer segments do not (the domain of a
-- former customer, the beginning of ids that count up), a search read all the matches of that segment
-- to find the newest. A sample of each full segment tells it from which id on there are enough.

-- The grams that many persons of a segment have, from a sample of it.
create table search_segment_grams (
  project_id integer not null,
  gram       text collate "C" not null check (char_length(gram) between 1 and 5),
  segment    integer not null,
  -- The lowest id of the newest few persons of the sample that have the gram.
  since      bigint not null,
  -- About every how many rows one has it from there on; null if the newest of the segment do not.
  every      real check (every > 0),
  -- Read for all segments at once, mostly from the index alone.
  primary key (project_id, gram, segment) include (since, every),
  foreign key (project_id, segment) references search_segments on delete cascade
);

-- How many persons it had been given when it was sampled: at first when it is full, and again when
-- these are a tenth more.
alter table search_segments add column sampled_persons integer not null default 0;

-- Samples one segment that is due, and returns whether there was one.
create function search_sample_segment(in_project_id integer) returns boolean language plpgsql
  set enable_seqscan = off
  set jit = off
  set max_parallel_workers_per_gather = 0
as $$
declare
  -- So many of a segment are sampled, and a gram is kept if `many` of these have it.
  rows constant integer := 640;
  few constant integer := 4;
  many constant integer := 8;
  step integer;
  -- As in search_estimate_shares.
  longest_text constant integer := 500;
  due record;
begin
  if not pg_try_advisory_xact_lock(1279610952, in_project_id) then
    return false;
  end if;
  select s.segment, s.first_id, s.next_id, s.persons into due
  from (
    select g.segment, g.first_id, g.persons, g.sampled_persons,
           lead(g.first_id) over (order by g.first_id) as next_id
    from search_segments g where g.project_id = in_project_id) s
  where s.next_id is not null and s.persons > s.sampled_persons * 1.1
  order by s.first_id desc limit 1;
  if due.segment is null then
    return false;
  end if;
  step := greatest(1, due.persons / rows);
  update search_segments g set sampled_persons = g.persons
  where g.project_id = in_project_id and g.segment = due.segment;

  delete from search_segment_grams g
  where g.project_id = in_project_id and g.segment = due.segment;
  insert into search_segment_grams (project_id, gram, segment, since, every)
  with sample as materialized (
    select p.person_id, p.text, r.depth
    from (
      select s.person_id, row_number() over (order by s.person_id desc)::integer as depth
      from person_search s
      where s.project_id = in_project_id
        and s.person_id >= due.first_id and s.person_id < due.next_id) r
    join person_search p on p.project_id = in_project_id and p.person_id = r.person_id
    where r.depth % step = 0
      and length(p.text) <= longest_text
  ), grams as (
    -- Without the project and the segment, `0:0:`.
    select t.depth, t.person_id, substr(l.lexeme, 5) as gram
    from sample t
    cross join lateral unnest(tsvector_to_array(search_lexemes(0, 0, t.text))) as l(lexeme)
  )
  select in_project_id, g.gram, due.segment, g.ids[few],
         -- Of those spread evenly, the first is mostly as far from the end as they from each other.
         case when g.depths[1] <= g.depths[few] - g.depths[1]
           then g.depths[few]::real / (few * step) end
  from (
    select s.gram, array_agg(s.person_id order by s.depth) as ids,
           array_agg(s.depth order by s.depth) as depths
    from grams s group by s.gram having count(*) >= many) g;
  return true;
end $$;

-- To call search_lexemes for fewer rows, the planner would gather all ids of a project from the primary
-- key, which takes longer than the search. It does not if all rows seem to be of one project and the
-- function costs less.
alter table person_search alter column project_id set (n_distinct = 1);
alter function search_lexemes(integer, integer, text) cost 500;

-- As before, but where the sample says that the text is frequent, the segment is read from there on.
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
  last_place integer;
  first_place integer;
  -- The segments whose sample has all the grams often, by their place above, and since when.
  frequent_places integer[];
  since_ids bigint[];
  everys real[];
  frequent integer := 1;
  since bigint;
  match record;
  -- With more matches than these in a segment, its newest rows are read first: they are likely to
  -- fill the page. Both numbers grow with the segment so that a wrong guess takes about as long.
  most integer;
  newest integer;
  is_frequent boolean;
  low bigint;
  high bigint;
  rest integer;
  these bigint[];
  found bigint[] := '{}';
begin
  select array_agg(g.place order by g.place), array_agg(g.since order by g.place),
         array_agg(g.every order by g.place)
  into frequent_places, since_ids, everys
  from (
    select array_position(segments, f.segment) as place, min(f.since) as since,
           case when bool_and(f.every is not null) then max(f.every) end as every
    from search_segment_grams f
    where f.project_id = in_project_id and f.gram = any (grams)
    group by f.segment having count(*) = cardinality(grams)) g
  where g.place is not null;

  while place <= cardinality(segments) and cardinality(found) < page
    and (place = 1 or first_ids[place - 1] > above)
  loop
    these := '{}';
    if place = frequent_places[frequent] then
      since := since_ids[frequent];
      -- A page is likely to be among so many rows.
      newest := 1.5 * page * everys[frequent];
      if newest is null or newest > 3 * newest_rows then
        newest := 0;
      end if;
      frequent := frequent + 1;
    else
      since := first_ids[place];
      first_place := place;
      last_place := coalesce(frequent_places[frequent] - 1, cardinality(segments));
      most := least(most_rows, sqrt(6 * persons[place]));
      is_frequent := false;
      -- The offset keeps the planner from going through the whole index once for all segments. Citus
      -- then needs the project to know which shard to ask.
      for match in
        select first_place + q.place - 1 as place, m.person_id
        from unnest(queries[first_place:last_place]) with ordinality q(query, place)
        cross join lateral (
          select s.person_id from person_search s
          where search_lexemes(s.project_id, s.segment, s.text) @@ q.query::tsquery
            and s.segment > 0
            and s.project_id = in_project_id and s.person_id + 0 < below
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
          since := first_ids[place];
        end if;
        these := these || match.person_id;
        is_frequent := cardinality(these) > most;
        exit when is_frequent;
      end loop;
      if not is_frequent then
        found := found || these;
        place := last_place + 1;
        continue;
      end if;
      newest := greatest(newest_rows, sqrt(190 * persons[place]));
    end if;

    rest := page - cardinality(found);
    these := array(
      select n.person_id from (
        select s.person_id, s.text, s.segment from person_search s
        where s.project_id = in_project_id and s.person_id >= first_ids[place]
          and s.person_id < least(below, first_ids[place - 1])
        order by s.person_id desc limit newest) n
      where n.segment > 0 and strpos(n.text, term) > 0
      limit rest);
    if cardinality(these) < rest then
      these := '{}';
      high := least(below, first_ids[place - 1]);
      foreach low in array array[since, first_ids[place]] loop
        continue when low >= high;
        these := these || array(
          select s.person_id from person_search s
          where search_lexemes(s.project_id, s.segment, s.text) @@ queries[place]::tsquery
            and s.segment > 0
            and s.project_id + 0 = in_project_id
            and s.person_id + 0 >= low and s.person_id + 0 < high
            and strpos(s.text, term) > 0
          order by s.person_id desc limit rest - cardinality(these));
        exit when cardinality(these) = rest;
        high := low;
        -- Fewer have the text than have its grams, so the sample does not help in other segments.
        frequent_places := null;
      end loop;
    end if;
    found := found || these;
    place := place + 1;
  end loop;
  return found;
end $$;

-- As before, but a large project has segments three times as large: a search takes time for each of
-- them, and less than before for one in which the text is frequent.
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
