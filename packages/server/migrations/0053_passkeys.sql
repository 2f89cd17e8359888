-- Passkeys: another second factor of members who have one. The id is the credential's, of the public
-- key nothing is secret.
create table auth.passkeys (
  id           text collate "C" primary key check (length(id) between 1 and 2000),
  member_id    uuid not null references auth.members on delete cascade,
  name         text not null check (length(name) between 1 and 100),
  public_key   bytea not null,
  counter      bigint not null check (counter >= 0),
  created_at   timestamptz(3) not null default app_now(),
  last_used_at timestamptz(3)
);
create index passkeys_by_member on auth.passkeys (member_id);

-- What an authenticator has to sign: each is good once, for a few minutes.
create table auth.passkey_challenges (
  challenge  text collate "C" primary key,
  member_id  uuid not null references auth.members on delete cascade,
  purpose    text not null check (purpose in ('add', 'use')),
  expires_at timestamptz(3) not null
);
create index passkey_challenges_by_member on auth.passkey_challenges (member_id);
create index passkey_challenges_by_end on auth.passkey_challenges (expires_at);
