-- A key is made before its browser, maybe in another database. Until somebody saw that the browser
-- came to be, this says since when; what has no browser after some minutes is destroyed.
alter table browser_keys add column unchecked_since timestamptz(3) default now();
create index browser_keys_unchecked
  on browser_keys (unchecked_since) where unchecked_since is not null;
