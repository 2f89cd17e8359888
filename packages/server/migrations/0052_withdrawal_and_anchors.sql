-- Whether a page may ask to erase what its own browser recorded.
alter table projects add column allows_withdrawal boolean not null default false;

-- How far the project's chain of receipts was sent to where anchors are kept.
alter table receipt_chains
  add column anchored_length bigint not null default 0,
  add column anchored_at     timestamptz(3);

-- The master key under which the entries of the ledger were signed again, after a rotation.
alter table ledger_state add column signed_under text collate "C";
