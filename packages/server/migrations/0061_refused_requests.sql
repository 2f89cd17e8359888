-- Requests with a secret key that its rate limit refused, beside what limits refused of browsers.

alter table ingest_usage
  add column requests_refused bigint not null default 0 check (requests_refused >= 0);
