-- Anybody with the public key of a page can create people by identify(). Those whom only it has created have
-- a row here. They have a date from the end of their last browser on, and a project may delete them some days
-- after it.
create table identified_persons (
  project_id integer not null,
  person_id  bigint not null,
  idle_since date,
  primary key (project_id, person_id),
  foreign key (project_id, person_id) references persons on delete cascade
);
create index identified_persons_idle
  on identified_persons (project_id, idle_since) where idle_since is not null;

-- 0: they stay.
alter table projects add column identified_days integer not null default 0
  check (identified_days between 0 and 3650);
