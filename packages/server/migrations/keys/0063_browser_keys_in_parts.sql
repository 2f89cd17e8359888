-- A purge rewrites a table while nobody can read it, and each chunk needs a key. In parts that one
-- statement rewrites each, nobody waits long, however many browsers strangers have made.
alter table browser_keys rename to browser_keys_whole;
alter index browser_keys_pkey rename to browser_keys_whole_pkey;
alter index browser_keys_by_master_key rename to browser_keys_whole_by_master_key;
alter index browser_keys_unchecked rename to browser_keys_whole_unchecked;

create table browser_keys (
  project_id      integer not null,
  browser_id      uuid not null,
  master_key_id   text not null,
  wrapped         bytea not null,
  unchecked_since timestamptz(3) default now(),
  primary key (project_id, browser_id)
) partition by hash (browser_id);
create index browser_keys_by_master_key on browser_keys (master_key_id);
create index browser_keys_unchecked
  on browser_keys (unchecked_since) where unchecked_since is not null;

do $$
begin
  for part in 0..15 loop
    execute format(
      'create table browser_keys_%s partition of browser_keys for values with (modulus 16, remainder %s)',
      part, part);
  end loop;
end $$;

insert into browser_keys (project_id, browser_id, master_key_id, wrapped, unchecked_since)
select project_id, browser_id, master_key_id, wrapped, unchecked_since from browser_keys_whole;
drop table browser_keys_whole;
