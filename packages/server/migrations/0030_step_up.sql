-- When the member of a sign-in last proved who they are: by the password, and the second factor
-- where there is one. null: not since the sign-in was made by something else than that.
alter table auth.sign_ins add column proven_at timestamptz(3);

-- A link dies with the member who made it. null: the command line made it, or it is for the set-up.
alter table auth.links add column made_by uuid references auth.members on delete cascade;
create index links_by_maker on auth.links (made_by) where made_by is not null;
