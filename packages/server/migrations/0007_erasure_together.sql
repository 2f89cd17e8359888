-- An attempt at it together with others failed: from then on it is worked on alone.
alter table deletion_jobs add column is_alone boolean not null default false;
