-- Ed25519 public keys that the tokens of identify are checked with, two at once while they are rotated:
-- a leaked copy of one identifies nobody.
create table identity_keys (
  project_id integer not null references projects,
  id         uuid not null default gen_random_uuid(),
  public_key bytea not null check (octet_length(public_key) = 32),
  created_at timestamptz(3) not null default app_now(),
  primary key (project_id, id),
  unique (project_id, public_key)
);

-- Which proofs identify takes where it asks for one: all, tokens (they end) or EdDSA tokens alone.
alter table projects add column identity_proofs text not null default 'any'
  check (identity_proofs in ('any', 'tokens', 'eddsa'));
