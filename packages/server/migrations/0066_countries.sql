-- ISO 3166-1 alpha-2, of the address a session started from; null unless COUNTRY_DATABASE is set.
alter table sessions add column country text;
