import type { Db } from '../packages/server/src/sql.ts'

const words = (text: string) => text.trim().split(/\s+/)

export const firstNames = words(`
  james mary robert patricia john jennifer michael linda david elizabeth william barbara richard
  susan joseph jessica thomas sarah charles karen andre françois søren björn yuki haruto mei wei
  ahmed fatima olga ivan dmitri anna maria josé carlos ana luis peter hans greta lars ingrid noah
  liam emma olivia ava mia sophia isabella lucas mason ethan logan ella grace chloe nora hugo felix
  leon paul marie julie camille louis jules élodie zoë ольга дмитрий 三上 李 みさき γιάννης`)
export const syllables = words(`
  ba ber bin cor dal den dor fel fin gar gor hal hod kie wicz kow lan ler lin lom mar mer mon nor
  or pel per ram ren rin sal sen smi son sten tam ter ton vak ver wal win xan yor zel zim`)
export const domains = words(`
  gmail.com gmail.com gmail.com gmail.com gmail.com yahoo.com yahoo.com outlook.com outlook.com
  hotmail.com icloud.com acme.io globex.net initech.co.uk umbrella.org hooli.dev stark.industries
  wayne.enterprises example.org proton.me`)

/**
 * Persons in the order of their creation, every fifth of them in one of a thousand small projects.
 * Names and addresses are drawn by hashes of the person's number, so every run has the same ones;
 * they are in lower case, so they are their own folded form. A quarter of the oldest tenth has a
 * domain that nobody else has.
 */
export async function loadPersons(db: Db, persons: number): Promise<void> {
  await db.sql`
    insert into projects (name) select 'project ' || i from generate_series(1, 1001) as i`
  await db.begin(async (tx) => {
    await tx`
      insert into persons (project_id, id, external_id, properties, created_at, updated_at)
      select
        case when n % 5 = 0 then 2 + (n / 5) % 1000 else 1 end,
        (extract(epoch from moment) * 1000)::bigint << 20 | (n & 1048575),
        case when n % 3 = 0 then 'user_' || n else left(md5(n::text), 16) end,
        jsonb_build_object(
          'name', first_name || ' ' || last_name,
          'email', first_name || '.' || last_name || n % 977 || '@'
            || case when n < ${persons}::integer / 10 and hash3 % 4 = 0 then 'oldcorp.com'
                 else (${domains}::text[])[1 + hash3 % ${domains.length}] end,
          'plan', (array['free', 'pro', 'team'])[1 + hash1 % 3], 'visits', n % 50),
        moment, moment
      from generate_series(1, ${persons}::integer) as n
      cross join lateral (
        select abs(hashint4(n) / 2) as hash1, abs(hashint4(n + 1000000000) / 2) as hash2,
               abs(hashint4(-n) / 2) as hash3,
               timestamptz '2025-01-01' + n * interval '20 ms' as moment
      ) as drawn
      cross join lateral (
        select (${firstNames}::text[])[1 + hash1 % ${firstNames.length}] as first_name,
               (${syllables}::text[])[1 + hash2 % ${syllables.length}]
               || (${syllables}::text[])[1 + hash2 / 64 % ${syllables.length}]
               || case when hash3 % 3 = 0
                    then (${syllables}::text[])[1 + hash2 / 4096 % ${syllables.length}]
                    else '' end as last_name
      ) as named`
    await tx`
      insert into person_search (project_id, person_id, text)
      select project_id, id, concat_ws(
        U&'\\FFFF', external_id, properties->>'name', properties->>'email')
      from persons order by id`
  })
  await db.sql`vacuum analyze persons, person_search, projects`
}

/** Texts to search for, by how the search has to find them. Some are taken from the data. */
export async function textsOf(db: Db, project: number): Promise<Record<string, string[]>> {
  const rows = await db.sql<{ externalId: string; name: string; email: string }>`
    select external_id as "externalId", properties->>'name' as name, properties->>'email' as email
    from persons
    where project_id = ${project} and mod(hashint8(id), 20) = 0
    order by hashint8(id) limit 20`
  const lastNames = rows.map(({ name }) => name.split(' ')[1]!)
  return {
    'frequent, 1 character': ['a', 'e', '@', '.', '1', 'o', 'r'],
    'frequent, 2 characters': ['an', 'co', 'ma', 'er', 'il', '.c'],
    'frequent, 3 or more': ['com', 'gmail', 'user', 'mail.com', 'yahoo', 'user_9'],
    'a last name': lastNames,
    'a company': ['acme.io', 'globex', 'initech.co.uk', 'wayne', 'stark.ind', 'hooli.dev'],
    'a full name': rows.map(({ name }) => name),
    'an email': rows.map(({ email }) => email),
    'an externalId': rows.map(({ externalId }) => externalId),
    'absent, 3 or more': ['zqx9', 'nobody here', 'qqq', 'xyzzy', 'jjjj', '---'],
    'absent, of frequent grams': [
      ...['gmail.com@gmail', 'useruser', 'mail.commail', 'anan.anan', '.com.com', 'ermaner'],
      ...lastNames.slice(0, 6).map((name) => `user_${name}`),
    ],
    'one gram repeated': ['999', '9999', '999999', '000', '0000', '1111', 'aaa', 'eee'],
    'rare, 1 character': ['q', '三', 'ø', 'γ', '李', 'ё'],
    'absent, 1 character': ['ж', '~', '☃', '#', '漢'],
    'rare, 2 characters': ['xa', 'zi', 'øs', 'ux', '三上', 'ai', 'yx', '9z'],
    'absent, 2 characters': ['qz', 'zq', '~~', '漢字', 'q9'],
    'special characters': ['%', '_', '%%', '\\', "'", 'a_b', '_9', '(x', ':', '&|!', '@a', '..'],
    'not ASCII': ['françois', 'Élodie', 'ольга', 'みさき', 'Γιάννης', 'zoë', '三上 ba', 'ДМИТ'],
    'only in the oldest tenth': ['oldcorp', '@oldcorp.com', 'oldcorp.', '1@oldcorp'],
    'about 1 % have it': ['louis', 'paul ', 'emma.', 'grace', 'felix'],
    'about 0.1 % have it': ['user_12', 'anna ba', 'leon.h', 'hodkie', 'user_77'],
  }
}
