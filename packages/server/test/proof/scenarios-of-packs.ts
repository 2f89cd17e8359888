import { type Operations, type Place, recordPerson } from './operations.ts'
import { bystanders, check, isOneOf, type Scenario, work } from './scenario.ts'
import type { Facts } from './world.ts'

const plantTwoChunks = (act: Operations) => recordPerson(act, 'ada', { chunks: 2 })

/** The numbers of a session's readable chunks, inside or outside packs. */
function numbersOf({ sessions, chunks, files }: Facts, { sessionId }: Place): string {
  const stored = chunks.filter((one) => one.session_id === sessionId && one.state === 'stored')
  const loose = stored.filter(({ tab }) => tab !== '').map(({ number }) => number)
  const packs = stored.filter(({ tab }) => tab === '').map(({ number }) => number)
  const entries: [string, number, number][] =
    sessions.find((one) => one.id === sessionId)?.packed ?? []
  for (const [, , pack] of entries) check(packs.includes(pack), 'a pack is missing')
  for (const { blob_key } of stored) check(files.has(blob_key), 'a stored blob is missing')
  return [...loose, ...entries.map(([, number]) => number)].sort().join()
}

/** A session is packed while its person is erased: nothing is left. */
const packOfErased: Pick<Scenario, 'allowances' | 'plant' | 'actors' | 'expect'> = {
  allowances: { mayPack: true },
  plant: plantTwoChunks,
  actors: (act, { places }) => ({
    '1 pack': () => act.pack(places[0]),
    '2 DELETE': () => act.remove('ada'),
    '3 worker': () => work(act),
  }),
  expect(_answers, atRest) {
    check(atRest.sessions.length === bystanders.sessions, 'a session is left')
  },
}

/** Operations during the packing of a finished session. */
export const scenariosOfPacks: Scenario[] = [
  ...[false, true].map(
    (isBucket): Scenario => ({
      name: `a pack ∥ DELETE ∥ worker, in a ${isBucket ? 'bucket' : 'folder'}: nothing is left`,
      bounds: [0, 2],
      schedulesMinimum: [6, 1400],
      isBucket,
      ...packOfErased,
    }),
  ),
  {
    name: 'a pack ∥ DELETE with the recordings kept ∥ worker: each chunk exists once',
    bounds: [0, 2],
    schedulesMinimum: [6, 1300],
    allowances: { mayPack: true },
    plant: plantTwoChunks,
    actors: (act, { places }) => ({
      '1 pack': () => act.pack(places[0]),
      '2 DELETE': () => act.remove('ada', true),
      '3 worker': () => work(act),
    }),
    expect(_answers, atRest, { places }) {
      check(numbersOf(atRest, places[0]) === '0,1', 'the chunks have changed')
      check(atRest.links.length === bystanders.links, 'the recordings are linked to a person')
    },
  },
  ...(['before', 'after'] as const).map(
    (when): Scenario => ({
      name: `a worker dies ${when} it puts a pack ∥ DELETE ∥ another worker: nothing is left`,
      bounds: [0, 2],
      schedulesMinimum: [6, 1100],
      death: { lane: '1 pack', at: /^blobs\.put/, when },
      ...packOfErased,
    }),
  ),
  ...[
    { name: 'a chunk sent again', number: 1, numbers: '0,1' },
    { name: 'a late chunk', number: 7, numbers: '0,1,7' },
  ].map(
    ({ name, number, numbers }): Scenario => ({
      name: `a pack ∥ ${name}: each chunk exists once`,
      bounds: [1, 3],
      schedulesMinimum: [1, 80],
      allowances: { mayPack: true },
      plant: plantTwoChunks,
      actors: (act, { places }) => ({
        '1 pack': () => act.pack(places[0]),
        '2 chunk': () => act.chunk(places[0], number),
      }),
      expect({ '2 chunk': answer }, atRest, { places }) {
        isOneOf(answer, 200)
        check(numbersOf(atRest, places[0]) === numbers, 'a chunk is missing or exists twice')
      },
    }),
  ),
  {
    name: 'a pack whose intent expires ∥ the collector: each chunk exists once',
    bounds: [1, 3],
    schedulesMinimum: [14, 130],
    allowances: { mayPack: true, mayPutLate: true },
    plant: plantTwoChunks,
    actors: (act, { places }) => ({
      '1 pack': () => act.pack(places[0]),
      '2 collector': async () => [await act.forward(61), await act.collect()],
    }),
    expect(_answers, atRest, { places }) {
      check(numbersOf(atRest, places[0]) === '0,1', 'a chunk is missing or exists twice')
    },
  },
  {
    name: 'a pack that takes too long ∥ another pack of the session: each chunk exists once',
    bounds: [0, 2],
    schedulesMinimum: [2, 210],
    allowances: { mayPack: true, mayPutLate: true },
    plant: plantTwoChunks,
    actors: (act, { places }) => ({
      '1 pack': () => act.pack(places[0]),
      '2 pack': async () => [await act.forward(61), await act.pack(places[0])],
    }),
    expect(_answers, atRest, { places }) {
      check(numbersOf(atRest, places[0]) === '0,1', 'a chunk is missing or exists twice')
    },
  },
  {
    name: 'a pack ∥ a reader of the session: it gets each event once',
    bounds: [1, 2],
    schedulesMinimum: [19, 140],
    allowances: { mayPack: true },
    plant: plantTwoChunks,
    actors: (act, { places }) => ({
      '1 pack': () => act.pack(places[0]),
      '2 reader': () => act.readEvents(places[0]),
    }),
    expect({ '2 reader': text }) {
      check(text === '{"type":3,"timestamp":0}\n{"type":3,"timestamp":1}\n', 'events are missing')
    },
  },
  {
    name: 'a pack ∥ the retention: nothing is left',
    bounds: [0, 2],
    schedulesMinimum: [2, 280],
    allowances: { mayPack: true, mayExpire: true },
    plant: async (act, world) => {
      const planted = await plantTwoChunks(act)
      await world.query(`update projects set retention_days = 7 where id = ${world.project.id}`)
      await act.forward(7.5 * 86_400)
      return planted
    },
    actors: (act, { places }) => ({
      '1 pack': () => act.pack(places[0]),
      '2 retention': () => act.expire(),
    }),
    expect(_answers, atRest, { places }) {
      const left = atRest.chunks.filter((one) => one.session_id === places[0].sessionId)
      check(left.length === 0, 'chunks are left')
    },
  },
]
