import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import { connectOne } from '../src/sql.ts'
import { test } from './fixtures.ts'
import { newEnvironment, resultOf, runLethe } from './lethe-process.ts'

const limit = { timeout: 120_000 }

test(
  'lethe persons import takes what POST takes, names the lines it refuses, and repeats no data',
  limit,
  async ({ address, db, project }) => {
    const env = await newEnvironment(address)
    const file = join(env.DATA_DIR, '..', 'persons.ndjson')
    const lines: [line: string | Buffer, refused?: RegExp][] = [
      ['{"externalId":"ada","properties":{"plan":"free","name":"Ada"}}'],
      ['{"externalId":"bob"}\r'],
      [''],
      ['{"externalId":"ada","properties":{"plan":"pro","name":null,"n":1.10}}'],
      ['{"externalId":"ada","properties":{"plan":"pro"}}'],
      ['{"externalId":"canary"', /^The line is not valid JSON\.$/],
      ['["canary"]', /^The line must be an object\.$/],
      ['{"properties":{"x":"canary"}}', /^externalId is required\.$/],
      ['{"externalId":"x","canary":1}', /a field that this endpoint does not know/],
      ['{"externalId":"x","properties":{"x":"canary\\u0000"}}', /U\+0000/],
      [Buffer.from([0x22, 0xff, 0x22]), /^The line is not valid UTF-8\.$/],
      [
        `{"externalId":"x","properties":{"canary":"${'x'.repeat(1_100_000)}"}}`,
        /larger than 1 MiB/,
      ],
      [
        `{"externalId":"x","properties":{"x":${'['.repeat(30)}${']'.repeat(30)}}}`,
        /deeper than 20/,
      ],
      ['{"externalId":"gone"}', /deletion of this person is in progress/],
      [`{"externalId":"long","properties":{"x":"${'x'.repeat(100_000)}"}}`],
      ['{"externalId":"last"}'],
    ]
    await db.sql`select person_write(${project.id}, 'gone', '{}', '{}', 'gone', null, null, true)`
    const { code: erased, err: complaint } = await runLethe(
      ['erase', 'gone', '--project', String(project.id)],
      env,
    )
    expect([erased, complaint]).toEqual([0, ''])
    const newline = Buffer.from('\n')
    const bytes = lines.flatMap(([line]) => [Buffer.from(line), newline]).slice(0, -1)
    writeFileSync(file, Buffer.concat(bytes))

    const words = ['persons', 'import', file, '--project', String(project.id)]
    const imported = await runLethe([...words, '--json'], env)
    expect(imported.err).toBe('lethe: 9 lines were refused; all others are imported.\n')
    expect(imported.code).toBe(1)
    expect(resultOf(imported)).toEqual({
      lines: 15,
      created: 4,
      updated: 1,
      unchanged: 1,
      refused: 9,
    })
    const refused = new Map<number, string>()
    for (const line of imported.out.trim().split('\n')) {
      const told = JSON.parse(line).refused
      if (typeof told === 'object') refused.set(told.line, told.reason)
    }
    for (const [place, [, reason]] of lines.entries()) {
      if (reason) expect(refused.get(place + 1), String(place + 1)).toMatch(reason)
      else expect(refused.has(place + 1), String(place + 1)).toBe(false)
    }
    expect(imported.out + imported.err).not.toContain('canary')
    const stored = await db.sql`
    select external_id as id, properties::text as properties from persons
    where project_id = ${project.id} and external_id <> 'long' order by external_id`
    expect(stored).toEqual([
      { id: 'ada', properties: '{"n": 1.10, "plan": "pro"}' },
      { id: 'bob', properties: '{}' },
      { id: 'gone', properties: '{}' },
      { id: 'last', properties: '{}' },
    ])

    const again = await runLethe(words, env)
    expect(again.out).toBe('15 lines: 0 created, 2 updated, 4 unchanged, 9 refused.\n')
    expect(again.err.split('\n').length).toBe(11)
    expect(again.err).toMatch(/^line 6: The line is not valid JSON\.$/m)
    expect(again.err + again.out).not.toContain('canary')
  },
)

test(
  'an import that a fault stops says with which line to go on',
  limit,
  async ({ address, db, project }) => {
    const env = await newEnvironment(address)
    const file = join(env.DATA_DIR, '..', 'persons.ndjson')
    const ids = Array.from({ length: 300 }, (_, n) => `person-${n + 1}`)
    const words = ['persons', 'import', file, '--project', String(project.id), '--json']
    const [locked = ''] = ids.slice(199)
    await db.sql`select person_write(${project.id}, ${locked}, '{"a":1}', '{}', '', null, null, true)`
    writeFileSync(
      file,
      ids.map((externalId) => JSON.stringify({ externalId, properties: { b: 1 } })).join('\n'),
    )
    const { client, end } = await connectOne(address)
    await client.query('begin')
    await client.query('select from persons where external_id = $1 for update', [locked])
    const stopped = await runLethe(words, env)
    await end()
    expect(stopped.code, stopped.err).toBe(1)
    const from =
      /^lethe: .+ All lines before (\d+) are done: continue with --from-line \1\.\n$/.exec(
        stopped.err,
      )?.[1]
    expect(from, stopped.err).toBe('129')

    const resumed = await runLethe([...words, '--from-line', '129'], env)
    expect([resumed.code, resumed.err]).toEqual([0, ''])
    expect(resultOf(resumed)).toMatchObject({ lines: 172, refused: 0 })
    const [count] = await db.sql`
    select count(*)::int as count from persons
    where project_id = ${project.id} and properties @> '{"b":1}'`
    expect(count).toEqual({ count: 300 })

    for (const wrong of [
      ['persons', 'import', file, '--project', '999999'],
      ['persons', 'import', file, '--project', String(project.id), '--from-line', '0'],
    ]) {
      expect(await runLethe(wrong, env)).toMatchObject({ code: 2, out: '' })
    }
    const absent = await runLethe(
      ['persons', 'import', `${file}.absent`, '--project', String(project.id)],
      env,
    )
    expect(absent).toMatchObject({ code: 1, out: '' })
    expect(absent.err).toMatch(/^lethe: [^\n]+persons\.ndjson\.absent does not exist[^\n]+\n$/)
  },
)
