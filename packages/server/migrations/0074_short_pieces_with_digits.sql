-- A piece of an id that is shorter than a gram (`_9`) was not in the samples, and as ids count up, one
-- segment has nothing else and the next one nothing of it. Now these are sampled as well.
delete from search_segment_grams;
update search_segments set sampled_persons = 0;

-- As before, with the pieces of one to three characters that have a digit.
create or replace function search_sample_segment(in_project_id integer) returns boolean
  language plpgsql
  set enable_seqscan = off
  set jit = off
  set max_parallel_workers_per_gather = 0
as $$
declare
  -- A gram is kept if `many` of the sample have it. The last to have it is looked for if a fiftieth
  -- has it, and not more persons are read for this than a statement has time for. A node of a cluster
  -- would read the whole segment.
  many constant integer := 8;
  few constant integer := 64;
  most_read constant integer := 1000000;
  is_on_cluster constant boolean := to_regclass('pg_dist_partition') is not null;
  -- As in search_estimate_shares.
  longest_text constant integer := 500;
  step integer;
  due record;
begin
  if not pg_try_advisory_xact_lock(1279610952, in_project_id) then
    return false;
  end if;
  -- A full one when it has a tenth more than when it was sampled, the newest one when it has twice as
  -- many and is no longer small.
  select s.segment, s.first_id, s.last_id, s.persons into due
  from (
    select g.segment, g.first_id, g.last_id, g.persons, g.sampled_persons,
           lead(g.first_id) over by_id as next_id, lag(g.persons) over by_id as before
    from search_segments g where g.project_id = in_project_id
    window by_id as (order by g.first_id)) s
  where case when s.next_id is not null then s.persons > s.sampled_persons * 1.1
    else s.persons > s.sampled_persons * 2 and s.persons > s.before / 4 end
  order by s.first_id desc limit 1;
  if due.segment is null then
    return false;
  end if;
  update search_segments g set sampled_persons = g.persons
  where g.project_id = in_project_id and g.segment = due.segment;
  delete from search_segment_grams g
  where g.project_id = in_project_id and g.segment = due.segment;

  -- About every 50th person, but at least 640 and at most 1,280 of them.
  step := greatest(1, due.persons / 1280, least(50, due.persons / 640));
  insert into search_segment_grams (project_id, gram, segment, every, newest)
  with sample as materialized (
    select p.text, r.depth
    from (
      select s.person_id, row_number() over (order by s.person_id desc)::integer as depth
      from person_search s
      where s.project_id = in_project_id
        and s.person_id >= due.first_id and s.person_id <= due.last_id) r
    join person_search p on p.project_id = in_project_id and p.person_id = r.person_id
    -- Not by the depth: what every third person has would be in all of a sample, or in none.
    where (hashint8(r.person_id) & 2147483647) % step = 0 and length(p.text) <= longest_text
  ), grams as (
    -- Without the project and the segment, `0:0:`.
    select t.depth, substr(l.lexeme, 5) as gram
    from sample t
    cross join lateral unnest(tsvector_to_array(search_lexemes(0, 0, t.text))) as l(lexeme)
  ), pieces as (
    select g.depth, g.gram from grams g where search_gram_is_whole(g.gram)
    union
    select g.depth, left(g.gram, length)
    from grams g cross join generate_series(1, 3) as length
    where left(g.gram, length) ~ '[0-9]'
  ), frequent as materialized (
    select s.gram, array_agg(s.depth order by s.depth) as depths
    from pieces s group by s.gram having count(*) >= many
  ), placed as (
    -- The newest have it too if the first of the sample is not much farther from the end than the
    -- next ones from each other.
    select f.gram, f.depths, f.depths[1] > f.depths[many] - f.depths[1] as is_late,
           cardinality(f.depths) * step as persons,
           sum(cardinality(f.depths) * step) over (
             order by f.depths[1] > f.depths[many] - f.depths[1] desc, cardinality(f.depths) desc)
             as sum_persons
    from frequent f
  ), known as materialized (
    select p.*, case when p.is_late and p.persons >= due.persons / 50 and p.sum_persons <= most_read
      and not is_on_cluster then (
        -- The additions leave the planner no other index.
        select max(s.person_id + 0) | 63 from person_search s
        where search_lexemes(s.project_id, s.segment, s.text)
            @@ search_gram_query(in_project_id || ':' || due.segment || ':', p.gram)::tsquery
          and s.segment > 0 and s.project_id + 0 = in_project_id) end as newest
    from placed p
  )
  -- Of the newest few of the sample that have the gram.
  select in_project_id, k.gram, due.segment,
    case when not k.is_late then k.depths[least(cardinality(k.depths), few)]
      when k.newest is not null
        then k.depths[least(cardinality(k.depths), few)] - k.depths[1] + step
    end::real / (least(cardinality(k.depths), few) * step),
    k.newest
  from known k;
  return true;
end $$;

-- As before, but a short term with digits is looked up in the samples; only of other short terms the
-- share in the project is taken.
create or replace function search_segments_for(
  in_project_id integer, term text, below bigint, above bigint, page integer,
  newest_rows integer, most_rows integer,
  segments integer[], first_ids bigint[], persons integer[], grams text[], share real
) returns bigint[] language plpgsql stable as $$
declare
  -- The lexemes of one segment, joined; U+FFFF stands for its number.
  query_of_segment constant text := (
    select string_agg(search_gram_query(in_project_id || U&':\FFFF:', g.gram), '&')
    from unnest(grams) as g(gram));
  queries constant text[] := array(
    select replace(query_of_segment, U&'\FFFF', s.segment::text)
    from unnest(segments) as s(segment));
  place integer := 1;
  last_place integer;
  first_place integer;
  -- The segments whose sample has all the grams often, by their place above; the last who has them
  -- all, and about every how many rows one has them from there on.
  frequent_places integer[];
  newest_ids bigint[];
  everys real[];
  frequent integer := 1;
  match record;
  is_in_samples constant boolean := search_gram_is_whole(grams[1]) or term ~ '[0-9]';
  -- With more matches than these in a segment, its newest rows are read first: they are likely to fill
  -- the page. Both numbers grow with the segment so that a wrong guess takes about as long. Never in a
  -- segment of whose persons a sample has just told that few have the text.
  mosts constant integer[] := array(
    select case when is_in_samples and g.persons <= g.sampled_persons * 1.1 then g.persons
      else least(most_rows, sqrt(6 * g.persons)) end::integer
    from search_segments g
    where g.project_id = in_project_id and g.first_id <= first_ids[1]
    order by g.first_id desc);
  newest integer;
  is_frequent boolean;
  -- Whether the segment should have a page of those.
  is_enough boolean;
  high bigint;
  rest integer;
  these bigint[];
  found bigint[] := '{}';
begin
  if is_in_samples then
    select array_agg(g.place order by g.place), array_agg(g.newest order by g.place),
           array_agg(g.every order by g.place)
    into frequent_places, newest_ids, everys
    from (
      select array_position(segments, f.segment) as place,
             min(f.newest) as newest,
             case when bool_and(f.every is not null) then max(f.every) end as every
      from search_segment_grams f
      where f.project_id = in_project_id and f.gram = any (grams)
      group by f.segment having count(*) = cardinality(grams)) g
    where g.place is not null;
  elsif share > 0.005 then
    frequent_places := array(select generate_series(1, cardinality(segments)));
    -- Less of it, as this says less of a segment than its sample: fewer rows are read in vain.
    everys := array_fill(0.7 / share, array[cardinality(segments)]);
  end if;

  while place <= cardinality(segments) and cardinality(found) < page
    and (place = 1 or first_ids[place - 1] > above)
  loop
    these := '{}';
    high := least(below, first_ids[place - 1]);
    if place = frequent_places[frequent] then
      high := least(high, newest_ids[frequent] + 1);
      -- A page is likely to be among so many rows, unless it takes longer to read these than all
      -- the matches, of which each takes as long as four rows.
      newest := coalesce(3 * page * everys[frequent], 0);
      is_enough := newest < persons[place];
      if newest > 12 * persons[place] / everys[frequent] then
        newest := 0;
      end if;
      frequent := frequent + 1;
    else
      first_place := place;
      last_place := coalesce(frequent_places[frequent] - 1, cardinality(segments));
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
        end if;
        these := these || match.person_id;
        is_frequent := cardinality(these) > mosts[place];
        exit when is_frequent;
      end loop;
      if not is_frequent then
        found := found || these;
        place := last_place + 1;
        continue;
      end if;
      high := least(below, first_ids[place - 1]);
      newest := greatest(newest_rows, sqrt(190 * persons[place]));
    end if;

    rest := page - cardinality(found);
    these := array(
      select n.person_id from (
        select s.person_id, s.text, s.segment from person_search s
        where s.project_id = in_project_id and s.person_id >= first_ids[place]
          and s.person_id < high
        order by s.person_id desc limit newest) n
      where n.segment > 0 and strpos(n.text, term) > 0
      limit rest);
    if cardinality(these) < rest and first_ids[place] < high then
      these := array(
        select s.person_id from person_search s
        where search_lexemes(s.project_id, s.segment, s.text) @@ queries[place]::tsquery
          and s.segment > 0
          and s.project_id + 0 = in_project_id and s.person_id + 0 < high
          and strpos(s.text, term) > 0
        order by s.person_id desc limit rest);
      -- Fewer have the text than its grams say, so these do not help in other segments. (Of the first
      -- one, the page before this may have had the others.)
      if cardinality(these) < rest
        and (place > 1 or not is_in_samples and is_enough)
      then
        frequent_places := null;
      end if;
    end if;
    found := found || these;
    place := place + 1;
  end loop;
  return found;
end $$;
