-- When a fifth of a table has changed, autovacuum looks at it. These are large and change all the time,
-- so it would come late, to much at once.

-- A chunk's row is inserted, updated by its confirmation, and deleted when its session is packed.
alter table chunks set (
  autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.05);
-- Each chunk updates its session.
alter table sessions set (
  autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.05);
-- A job is updated by each step of its erasure, and beside it are all that ended, for ever.
alter table deletion_jobs set (
  autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.05);
alter table deletion_attempts set (autovacuum_vacuum_scale_factor = 0.02);
alter table ledger_entries set (autovacuum_vacuum_scale_factor = 0.02);
-- Updated by each attempt, and deleted 30 days later.
alter table webhook_deliveries set (autovacuum_vacuum_scale_factor = 0.05);
-- The others are only added to (receipts, erased_persons, audit_log), or change little.
