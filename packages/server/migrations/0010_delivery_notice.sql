-- Processes that deliver hear of new deliveries at once, and need not look for them all the time.
create function webhook_delivery_pending() returns trigger language plpgsql as $$
begin
  perform pg_notify('lethe_webhook_deliveries', '');
  return null;
end $$;
create trigger webhook_delivery_pending after insert or update of state on webhook_deliveries
  for each row when (new.state = 'pending')
  execute function webhook_delivery_pending();
