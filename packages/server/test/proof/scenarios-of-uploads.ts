import { recordPerson } from './operations.ts'
import {
  bystanders,
  check,
  isOneOf,
  isStoredIfAnswered,
  plantAda,
  type Scenario,
  work,
} from './scenario.ts'

/** What browsers send while their person is erased. Images and fonts are events in chunks too. */
export const scenariosOfUploads: Scenario[] = [
  ...[
    {
      name: 'chunk ∥ DELETE ∥ worker: erased too, or 410',
      bounds: [0, 2] as [number, number],
      schedulesMinimum: [6, 181] as [number, number],
    },
    {
      name: 'chunk ∥ DELETE ∥ worker, in a bucket: the worker waits for uploads that may still put',
      bounds: [0, 2] as [number, number],
      schedulesMinimum: [6, 175] as [number, number],
      isBucket: true,
    },
  ].map(
    (one): Scenario => ({
      ...one,
      plant: plantAda,
      actors: (act, { places }) => ({
        '1 chunk': () => act.chunk(places[0], 7),
        '2 DELETE': () => act.remove('ada'),
        '3 worker': () => work(act),
      }),
      expect({ '1 chunk': answer }, atRest) {
        isOneOf(answer, 200, 410)
        check(atRest.sessions.length === bystanders.sessions, 'a session is left')
      },
    }),
  ),
  ...[false, true].map(
    (isBucket): Scenario => ({
      name: `chunks that share commits ∥ DELETE ∥ worker, in a ${isBucket ? 'bucket' : 'folder'}: each erased too, or 410`,
      bounds: [0, 2],
      schedulesMinimum: [6, 91],
      isBucket,
      plant: (act) => recordPerson(act, 'ada', { browsers: 2 }),
      actors: (act, { places }) => ({
        '1 chunks': () => act.chunksTogether(places, 7),
        '2 DELETE': () => act.remove('ada'),
        '3 worker': () => work(act),
      }),
      expect({ '1 chunks': answers }, atRest) {
        for (const answer of answers) isOneOf(answer, 200, 410)
        check(atRest.sessions.length === bystanders.sessions, 'a session is left')
      },
    }),
  ),
  {
    name: 'chunk ∥ DELETE with the recordings kept ∥ worker: stored, or 410',
    bounds: [0, 2],
    schedulesMinimum: [6, 168],
    plant: plantAda,
    actors: (act, { places }) => ({
      '1 chunk': () => act.chunk(places[0], 7),
      '2 DELETE': () => act.remove('ada', true),
      '3 worker': () => work(act),
    }),
    expect({ '1 chunk': answer }, atRest, { places }) {
      isOneOf(answer, 200, 410)
      const mine = atRest.chunks.filter((one) => one.session_id === places[0].sessionId)
      check(mine.length === (answer.status === 200 ? 2 : 1), `there are ${mine.length} chunks`)
      check(atRest.links.length === bystanders.links, 'the recordings are linked to a person')
    },
  },
  ...[false, true].map(
    (isBucket): Scenario => ({
      name: `an upload whose intent expires ∥ worker, in a ${isBucket ? 'bucket' : 'folder'}: never confirmed afterwards`,
      bounds: [0, 3],
      schedulesMinimum: [2, 66],
      isBucket,
      // A bucket accepts late puts, sealed with a destroyed key. The process then deletes the blob.
      allowances: { mayPutLate: isBucket },
      plant: plantAda,
      actors: (act, { places }) => ({
        '1 chunk': () => act.chunk(places[0], 7),
        '2 DELETE and worker': async () => {
          const answer = await act.remove('ada')
          await act.forward(61)
          return [answer, await act.attempt()]
        },
      }),
      expect({ '1 chunk': answer }, atRest) {
        isOneOf(answer, 200, 410)
        check(atRest.sessions.length === bystanders.sessions, 'a session is left')
      },
    }),
  ),
  {
    name: 'an upload ∥ the collector: an intent that can still be confirmed stays',
    bounds: [1, 2],
    schedulesMinimum: [5, 5],
    plant: plantAda,
    actors: (act, { places }) => ({
      '1 chunk': () => act.chunk(places[0], 7),
      '2 collector': () => act.collect(),
    }),
    expect({ '1 chunk': answer }, atRest) {
      isOneOf(answer, 200)
      check(
        atRest.chunks.some((one) => one.number === 7),
        'the chunk is missing',
      )
    },
  },
  {
    name: 'an upload whose intent expires ∥ the collector: stored completely or not at all',
    bounds: [1, 3],
    schedulesMinimum: [6, 15],
    allowances: { mayPutLate: true },
    plant: plantAda,
    actors: (act, { places }) => ({
      '1 chunk': () => act.chunk(places[0], 7),
      '2 collector': async () => [await act.forward(61), await act.collect()],
    }),
    expect({ '1 chunk': answer }, atRest) {
      isOneOf(answer, 200, 410)
      isStoredIfAnswered(atRest, answer)
    },
  },
  {
    name: 'an expired upload repeated ∥ the first one ∥ the collector: one chunk at most',
    bounds: [0, 2],
    schedulesMinimum: [6, 173],
    allowances: { mayPutLate: true },
    plant: plantAda,
    actors: (act, { places }) => ({
      '1 chunk': () => act.chunk(places[0], 7),
      '2 chunk': async () => {
        await act.forward(61)
        return act.chunk(places[0], 7)
      },
      '3 collector': () => act.collect(),
    }),
    expect(answers, atRest) {
      isOneOf(answers['1 chunk'], 200, 410, 409)
      isOneOf(answers['2 chunk'], 200, 410, 409)
      isStoredIfAnswered(atRest, answers['1 chunk'], answers['2 chunk'])
    },
  },
  ...(['before', 'after'] as const).flatMap((when) =>
    [false, true].map(
      (isBucket): Scenario => ({
        name: `an uploader dies ${when} its put ∥ DELETE ∥ worker, in a ${isBucket ? 'bucket' : 'folder'}`,
        bounds: [0, 2],
        schedulesMinimum: [6, 136],
        isBucket,
        death: { lane: '1 chunk', at: /^blobs\.put/, when },
        allowances: { mayLeaveSealed: isBucket },
        plant: plantAda,
        actors: (act, { places }) => ({
          '1 chunk': () => act.chunk(places[0], 7),
          '2 DELETE': () => act.remove('ada'),
          '3 worker': () => work(act),
        }),
        expect(_answers, atRest) {
          check(atRest.sessions.length === bystanders.sessions, 'a session is left')
        },
      }),
    ),
  ),
  {
    name: 'start ∥ DELETE ∥ worker: erased too, or 410',
    bounds: [0, 2],
    schedulesMinimum: [6, 249],
    plant: plantAda,
    allowances: { areCountsExact: true },
    actors: (act, { places }) => ({
      '1 start': () => act.start(places[0].browserId),
      '2 DELETE': () => act.remove('ada'),
      '3 worker': () => work(act),
    }),
    expect({ '1 start': answer }, atRest) {
      isOneOf(answer, 200, 410)
      check(atRest.sessions.length === bystanders.sessions, 'a session is left')
    },
  },
  {
    name: 'a chunk and a start after DELETE ∥ worker: 410, even before the worker retires the browser',
    bounds: [1, 2],
    schedulesMinimum: [9, 9],
    plant: plantAda,
    allowances: { areCountsExact: true },
    actors: (act, { places }) => ({
      '1 DELETE, chunk, start': async () => [
        await act.remove('ada'),
        await act.chunk(places[0], 7),
        await act.start(places[0].browserId),
        await act.identify(places[0].browserId, 'ada'),
      ],
      '2 worker': () => work(act),
    }),
    expect({ '1 DELETE, chunk, start': [removed, chunk, start, identified] }, atRest) {
      isOneOf(removed, 202)
      for (const answer of [chunk, start, identified]) isOneOf(answer, 410)
      check(atRest.sessions.length === bystanders.sessions, 'a session is left')
    },
  },
  {
    name: 'start and chunk of a browser ∥ DELETE of two browsers with the recordings kept',
    bounds: [1, 3],
    schedulesMinimum: [11, 44],
    plant: (act) => recordPerson(act, 'ada', { browsers: 2 }),
    actors: (act, { places }) => ({
      '1 start': async () => {
        const answer = await act.start(places[1].browserId)
        return [answer, answer.status === 200 ? await act.chunk(answer.json, 0) : undefined]
      },
      '2 DELETE': () => act.remove('ada', true),
    }),
    expect({ '1 start': [start, chunk] }, atRest) {
      isOneOf(start, 200, 410)
      if (chunk) isOneOf(chunk, 200, 410)
      const mine = atRest.sessions.length - bystanders.sessions
      check(mine === (start.status === 200 ? 3 : 2), `there are ${mine} sessions`)
    },
  },
]
