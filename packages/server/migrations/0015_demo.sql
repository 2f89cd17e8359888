-- The project of the demo page, which is nobody's data: at most one.
alter table projects add column is_demo boolean not null default false;
create unique index projects_one_demo on projects (is_demo) where is_demo;
