-- Attempts of earlier rounds, before somebody sent the delivery again: `attempts` counts the round
-- that runs, by which the pauses between attempts go.
alter table webhook_deliveries
  add column earlier_attempts integer not null default 0 check (earlier_attempts >= 0);
