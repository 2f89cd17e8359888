-- Nothing is ever kept here: a row that was deleted, and that VACUUM FULL may not remove yet, says that
-- somebody still holds on to what was deleted before.
create table if not exists purge_canary (id integer);
