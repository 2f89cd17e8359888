alter table audit_log
  -- From where: a /24 of IPv4, a /48 of IPv6. null: the command line.
  add column address_range text collate "C",
  -- An API key that did it.
  add column key_id uuid,
  -- Whom it is about, by the internal id; forgotten when the person is erased.
  add column person_id bigint;

update audit_log set person_id = subject_id::bigint
where subject_kind = 'person' and subject_id ~ '^\d{1,18}$';

create index audit_log_by_person on audit_log (project_id, person_id, id desc)
  where person_id is not null;
create index audit_log_of_sessions on audit_log (project_id, subject_id)
  where subject_kind = 'session' and subject_id is not null;
create index audit_log_by_time on audit_log (at);

create function audit_log_forgets_person() returns trigger language plpgsql as $$
begin
  update audit_log
  set person_id = null,
      subject_id = case
        when subject_kind = 'person' then null
        when subject_kind = 'session' and not new.keep_recordings then null
        else subject_id
      end
  where project_id = new.project_id and person_id = old.person_id;
  return null;
end $$;
create trigger deletion_jobs_audit_forgets after update of status on deletion_jobs
  for each row
  when (old.status is distinct from new.status and new.status = 'completed')
  execute function audit_log_forgets_person();
