import { describe, expect, test, vi } from 'vitest'
import { createUploader, type UploaderEvents } from '../src/recording/uploader.ts'
import { createServer } from '../src/request.ts'
import {
  type FakePlatform,
  fakePlatform,
  go,
  type Reply,
  type Request,
  retired,
  settle,
} from './fake-platform.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE

/** An uploader into one session, on a browser of the test's. */
function uploaderOn(reply: (request: Request) => Reply, others?: FakePlatform) {
  const browser = fakePlatform(reply, others)
  const on = {
    retired: vi.fn(),
    halt: vi.fn(),
    torn: vi.fn(),
    hopeless: vi.fn(),
    full: vi.fn(),
  } satisfies UploaderEvents
  const server = createServer(
    { ...browser, host: 'https://lethe.example', key: 'pk_x' },
    () => false,
  )
  const uploader = createUploader({ platform: browser.platform, server, generation: 'g' }, on)
  uploader.aim({ browser: 'b1', session: 's1' }, 1_000_000)
  return { ...browser, uploader, on }
}

const line = (text: string) => JSON.stringify({ type: 3, data: { text } })
const numbersOf = (requests: Request[]) => requests.map(({ query }) => Number(query.number))

describe('chunks', () => {
  test('are cut after five seconds at first, numbered, one JSON object a line', async () => {
    const { uploader, pass, to } = uploaderOn(() => go)
    uploader.write(line('a'), false)
    uploader.write(line('b\nc'), false)
    await pass(4_900)
    expect(to('chunks')).toHaveLength(0)
    await pass(200)
    uploader.write(line('d'), false)
    await pass(9_900)
    expect(to('chunks')).toHaveLength(1)
    await pass(200)
    expect(to('chunks').map(({ body }) => body)).toEqual([
      `${line('a')}\n${line('b\nc')}\n`,
      `${line('d')}\n`,
    ])
    expect(numbersOf(to('chunks'))).toEqual([0, 1])
    expect(to('chunks')[0]?.query).toMatchObject({ key: 'pk_x', browser: 'b1', session: 's1' })
  })

  test('of a five-minute session are 13, as the later ones wait for half a minute', async () => {
    const { uploader, to, beacons, clock, pass } = uploaderOn(() => go)
    const from = clock.now
    uploader.write(line('snapshot'), true)
    // What a visitor does who moves the pointer all the time: 300 KB.
    while (clock.now < from + 5 * MINUTE) {
      uploader.write(line('x'.repeat(500)), false)
      await pass(500)
    }
    uploader.hide(true)
    expect(to('chunks').map(({ at }) => (at - from) / 1000)).toEqual([
      0, 5, 15, 35, 65, 95, 125, 155, 185, 215, 245, 275,
    ])
    expect(beacons).toHaveLength(1)
  })

  test('of a page that changes much are cut as soon as a beacon would not hold them', async () => {
    const { uploader, to, beacons, pass } = uploaderOn(() => go)
    for (let seconds = 0; seconds < 62; seconds++) {
      uploader.write(line('x'.repeat(3_000)), false)
      await pass(1_000)
    }
    expect(Math.max(...to('chunks').map(({ body }) => body.length))).toBeLessThan(52_000)
    uploader.flush()
    await settle()
    uploader.write(line('x'.repeat(45_000)), false)
    await pass(5_000)
    uploader.hide(true)
    expect(beacons).toHaveLength(1)
  })

  test('that tell of an error go at once, but not with each error of a page that is full of them', async () => {
    const { uploader, to, pass } = uploaderOn(() => go)
    uploader.write(line('before'), false)
    await pass(5_000)
    uploader.count('errors')
    uploader.write(line('error'), false)
    await pass(600)
    expect(to('chunks').at(-1)?.body).toContain('error')
    const before = to('chunks').length
    for (let seconds = 0; seconds < 60; seconds++) {
      uploader.count('errors')
      uploader.write(line('error'), false)
      await pass(1_000)
    }
    expect(to('chunks').length - before).toBeLessThan(9)
    // Nothing was collected yet: the next chunk waits for its time like any other.
    await pass(MINUTE)
    uploader.count('errors')
    await pass(MINUTE)
    uploader.write(line('after'), false)
    await pass(MINUTE)
    expect(to('chunks').at(-1)?.body).toContain('after')
  })

  test('are cut before they grow too long, and at once after a snapshot', async () => {
    const { uploader, to } = uploaderOn(() => go)
    for (let times = 0; times < 20; times++) uploader.write(line('x'.repeat(10_000)), false)
    await settle()
    expect(to('chunks').length).toBeGreaterThanOrEqual(2)
    expect(Math.max(...to('chunks').map(({ body }) => body.length))).toBeLessThanOrEqual(65_536)
    uploader.write(line('snapshot'), true)
    await settle()
    expect(to('chunks').at(-1)?.body).toContain('snapshot')
  })

  test('no timer runs while there is nothing to send', async () => {
    const { uploader, timers, pass } = uploaderOn(() => go)
    uploader.write(line('a'), false)
    await pass(5_000)
    expect(timers.size).toBe(0)
  })

  test('collected before a change of session go to the session they belong to', async () => {
    const { uploader, to } = uploaderOn(() => go)
    uploader.write(line('before'), false)
    uploader.aim({ browser: 'b2', session: 's2' })
    uploader.write(line('after'), false)
    uploader.flush()
    await settle()
    expect(to('chunks').map(({ query }) => [query.session, query.number])).toEqual([
      ['s1', '0'],
      ['s2', '1'],
    ])
  })
})

describe('when the network is away', () => {
  test('the same chunk comes again, the others behind it, none twice and none missing', async () => {
    let isAway = true
    const { uploader, pass, to } = uploaderOn(() => (isAway ? undefined : go))
    for (let number = 0; number < 5; number++) {
      uploader.write(line(`event ${number}`), false)
      await pass(MINUTE)
    }
    expect(new Set(numbersOf(to('chunks')))).toEqual(new Set([0]))
    isAway = false
    await pass(2 * MINUTE)
    expect(numbersOf(to('chunks')).slice(-5)).toEqual([0, 1, 2, 3, 4])
  })

  test('it is asked ever less often, and at once when the network is back', async () => {
    let isAway = true
    const { uploader, pass, to } = uploaderOn(() => (isAway ? undefined : go))
    uploader.write(line('a'), false)
    await pass(HOUR)
    const tries = to('chunks')
    expect(tries.length).toBeGreaterThan(55)
    expect(tries.length).toBeLessThan(130)
    isAway = false
    uploader.wake()
    await settle()
    expect(to('chunks')).toHaveLength(tries.length + 1)
  })

  test('a day offline keeps 16 MB, counts the rest, and brings all of it when it ends', async () => {
    let isAway = true
    const arrived: string[] = []
    const { uploader, on, pass } = uploaderOn(({ body }) => {
      if (isAway) return undefined
      arrived.push(body)
      return go
    })
    let written = 0
    for (let minute = 0; minute < 24 * 60; minute++) {
      // The page pauses when it is told that the buffer is full, as the recording does.
      if (!on.full.mock.calls.length) {
        uploader.write(line('x'.repeat(60_000)), false)
        written++
      }
      await pass(MINUTE)
    }
    expect(on.full).toHaveBeenCalledTimes(1)
    expect(written * 60_000).toBeGreaterThan(16 * 1024 * 1024)
    expect(written * 60_000).toBeLessThan(16 * 1024 * 1024 + 200_000)
    isAway = false
    on.torn.mockImplementationOnce(() => uploader.write(line('snapshot'), true))
    await pass(5 * MINUTE)
    expect(on.torn).toHaveBeenCalledTimes(1)
    expect(arrived).toHaveLength(written)
    expect(arrived.at(-1)).toContain(
      '"tag":"lethe:dropped","payload":{"reason":"buffer_full","events":1}',
    )
    expect(arrived.at(-1)).toContain('snapshot')
  })
})

describe('what the server refuses', () => {
  test('is not sent again, is counted, and restarts the recording', async () => {
    let times = 0
    const { uploader, on, pass, to } = uploaderOn(() =>
      times++ ? go : { status: 400, body: { next: 'continue' } },
    )
    uploader.write(line('a'), false)
    uploader.write(line('b'), false)
    await pass(5_000)
    expect(on.torn).toHaveBeenCalledTimes(1)
    uploader.write(line('c'), false)
    await pass(MINUTE)
    expect(numbersOf(to('chunks'))).toEqual([0, 1])
    expect(to('chunks')[1]?.body).toContain('"payload":{"reason":"refused","events":2}')
  })

  test('three times in a row is the end, so that no page restarts without end', async () => {
    const { uploader, on, pass } = uploaderOn(() => ({ status: 413, body: { next: 'continue' } }))
    for (let times = 0; times < 3; times++) {
      uploader.write(line('a'), true)
      await pass(5_000)
    }
    expect(on.hopeless.mock.calls).toEqual([['refused']])
  })

  test('a snapshot that is too long is not even tried', async () => {
    const { uploader, on, pass, to } = uploaderOn(() => go)
    uploader.write(line('x'.repeat(1_000_001)), true)
    await pass(5_000)
    uploader.write(line('x'.repeat(8_000_001)), true)
    expect(on.hopeless.mock.calls).toEqual([['snapshot_too_big'], ['snapshot_too_big']])
    expect(to('chunks')).toHaveLength(0)
  })

  test('a retired browser takes everything with it that waits for it, and nothing else', async () => {
    let isAway = true
    const { uploader, on, pass, to } = uploaderOn(({ query }) => {
      if (isAway) return undefined
      return query.browser === 'b1' ? retired : go
    })
    uploader.write(line('one'), false)
    await pass(5_000)
    uploader.write(line('two'), false)
    await pass(5_000)
    uploader.write(line('still collected'), false)
    uploader.aim({ browser: 'b2', session: 's2' })
    uploader.write(line('three'), false)
    isAway = false
    await pass(2 * MINUTE)
    const answered = to('chunks').filter(
      ({ query }) => query.browser === 'b1' && query.number !== '0',
    )
    expect(answered).toHaveLength(0)
    expect(on.retired.mock.calls).toEqual([['b1']])
    expect(to('chunks').at(-1)?.body).toBe(`${line('three')}\n`)
  })

  test('stop forgets everything', async () => {
    const { uploader, on, pass, to } = uploaderOn(() => ({ status: 401, body: { next: 'stop' } }))
    uploader.write(line('one'), false)
    uploader.flush()
    uploader.write(line('two'), false)
    await pass(HOUR)
    expect(on.halt).toHaveBeenCalledTimes(1)
    expect(to('chunks')).toHaveLength(1)
    uploader.write(line('three'), false)
    await pass(HOUR)
    expect(to('chunks')).toHaveLength(1)
  })
})

describe('when the page goes away', () => {
  test('what fits goes as beacons, all of them together within 60 KB, in bytes', async () => {
    const { uploader, beacons } = uploaderOn(() => undefined)
    for (let times = 0; times < 10; times++) uploader.write(line('\u00e9'.repeat(4_000)), false)
    uploader.hide(true)
    const bytes = beacons.reduce((sum, { body }) => sum + Buffer.byteLength(body), 0)
    expect(bytes).toBeGreaterThan(50_000)
    expect(bytes).toBeLessThanOrEqual(60_000)
  })

  test('everything not confirmed is sent by the next page of the tab, under the same numbers', async () => {
    const first = uploaderOn(() => undefined)
    for (let times = 0; times < 20; times++)
      first.uploader.write(line(`${times} ${'x'.repeat(9_000)}`), false)
    await settle()
    first.uploader.hide(true)
    const arrived: Request[] = []
    const second = fakePlatform((request) => {
      arrived.push(request)
      return go
    })
    second.platform.tab = first.platform.tab
    const server = createServer(
      { ...second, host: 'https://lethe.example', key: 'pk_x' },
      () => false,
    )
    const nothing = () => {}
    const on = {
      retired: nothing,
      halt: nothing,
      torn: nothing,
      hopeless: nothing,
      full: nothing,
    }
    const uploader = createUploader({ platform: second.platform, server, generation: 'g' }, on)
    uploader.aim({ browser: 'b1', session: 's1' }, 1_000_000)
    uploader.write(line('next page'), false)
    uploader.flush()
    await settle()
    const numbers = numbersOf(arrived)
    expect(numbers).toEqual(numbers.map((_, at) => at))
    expect(arrived.flatMap(({ body }) => body.trim().split('\n'))).toHaveLength(21)
    expect(new Set(arrived.map(({ query }) => query.tab)).size).toBe(1)
    for (const beacon of first.beacons) {
      const same = arrived.find(({ query }) => query.number === beacon.query.number)
      expect(same?.body).toBe(beacon.body)
    }
  })

  test('what the browser does not take as a beacon is kept', async () => {
    const { uploader, platform, beacons } = uploaderOn(() => undefined)
    platform.takesBeacons = false
    uploader.write(line('a'), false)
    uploader.hide(true)
    expect(beacons).toHaveLength(0)
    expect(platform.tab.get('lethe.unsent')).toContain('b1')
  })

  test('a page that was only hidden sends it again, until it is confirmed', async () => {
    const { uploader, beacons, to, pass } = uploaderOn(() => go)
    uploader.write(line('a'), false)
    uploader.hide(false)
    uploader.hide(false)
    expect(beacons).toHaveLength(1)
    await pass(MINUTE)
    expect(to('chunks').map(({ body }) => body)).toEqual(beacons.map(({ body }) => body))
  })
})
