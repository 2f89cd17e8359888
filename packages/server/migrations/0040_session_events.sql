-- What the SDK says of a session's events. Their times are those of the visitor's clock, told as how
-- long ago they were when the chunk was sent: so a clock that is wrong does not matter.
alter table sessions
  add column first_event_at timestamptz(3),
  add column last_event_at timestamptz(3),
  -- What broke, as counted in its chunks.
  add column errors integer not null default 0 check (errors >= 0),
  add column failed_requests integer not null default 0 check (failed_requests >= 0),
  add column rage_clicks integer not null default 0 check (rage_clicks >= 0),
  add column dead_clicks integer not null default 0 check (dead_clicks >= 0),
  -- Where the recorder never comes a session would be empty: it is listed from its first chunk on.
  add column is_begun boolean not null default true;
