-- Whether images and fonts become part of recordings where a page asks for it.
alter table projects add column records_assets boolean not null default true;
