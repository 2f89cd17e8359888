import { afterEach, describe, expect, test, vi } from 'vitest'
import { createClient } from '../src/client.ts'
import type { PageEvents } from '../src/recording/page.ts'
import type { Recording, RecordingOptions } from '../src/recording/recording.ts'
import { createUploader } from '../src/recording/uploader.ts'
import { watch } from '../src/recording/watch.ts'
import {
  type FakePlatform,
  fakePlatform,
  go,
  type Reply,
  type Request,
  retired,
  settings,
  started,
} from './fake-platform.ts'

const SECOND = 1_000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE

/**
 * The recording without a page to record: its uploader is the real one, and a test writes the
 * events. `log` says what it was told.
 */
function stubRecording(
  options: RecordingOptions,
  { platform }: FakePlatform,
  log: string[],
): Recording {
  let state: ReturnType<Recording['state']> = 'off'
  const nothing = () => {}
  const { id: generation } = options.sessions.era()
  const uploader = createUploader(
    { ...options, platform, generation },
    {
      retired: options.retired,
      halt: options.halt,
      torn: nothing,
      hopeless: nothing,
      full: nothing,
    },
  )
  return {
    ...uploader,
    write: (line, isSnapshot) => options.still() && uploader.write(line, isSnapshot),
    state: () => state,
    settle({ id: of, identity }) {
      const { browserId: browser = '', sessionId: session = '' } = identity ?? {}
      uploader.settle(of, identity && { browser, session })
    },
    into(identity) {
      const target = { browser: identity.browserId, session: identity.sessionId }
      uploader.settle(identity.id, target)
      if (uploader.session() === identity.sessionId && state === 'on') return
      uploader.aim(target)
      state = 'on'
      log.push(`into ${identity.browserId} ${identity.sessionId}`)
      uploader.write(`snapshot of ${identity.browserId}`, true)
    },
    aside(generation) {
      log.push('aside')
      uploader.aim({ browser: '', session: generation })
      uploader.write('snapshot aside', true)
    },
    pause(reason) {
      if (state === 'on') log.push(`pause${reason ? ` ${reason}` : ''}`)
      state = reason ?? 'off'
    },
    finish: nothing,
    start: nothing,
    stop() {
      log.push('stop')
      state = 'off'
    },
  }
}

function page(
  reply: (request: Request) => Reply,
  others?: FakePlatform,
  tab: Record<string, string> = {},
) {
  const browser = fakePlatform(reply, others)
  for (const [name, value] of Object.entries(tab)) browser.platform.tab.set(name, value)
  const log: string[] = []
  let recording: Recording | undefined
  let events: PageEvents | undefined
  const client = createClient({
    key: 'pk_x',
    page: {},
    host: 'https://lethe.example',
    masking: 'balanced',
    platform: browser.platform,
    loadMore: () => Promise.reject(new Error('nothing asks for more')),
    async loadRecorder() {
      return {
        createRecording(options) {
          recording = stubRecording(options, browser, log)
          return recording
        },
        watch: (options) =>
          watch(options, (given) => {
            events = given
            return () => {}
          }),
      }
    },
  })
  return {
    ...browser,
    client,
    log,
    write: (text: string) => recording?.write(text, false),
    act: () => events?.act(),
    leave: () => events?.hide(true),
    stored: () => JSON.parse(browser.platform.shared.get('lethe.pk_x') ?? 'null'),
  }
}

/** A server that links browsers to persons as the real one does. */
function server() {
  const links = new Map<string, string>()
  const gone = new Set<string>()
  const state = { isAway: false }
  return {
    links,
    state,
    retire: (userId: string) => {
      for (const [browser, linked] of links) if (linked === userId) gone.add(browser)
    },
    reply({ endpoint, body, query }: Request): Reply {
      if (state.isAway) return undefined
      const { browserId, userId } =
        endpoint === 'chunks' ? { browserId: query.browser } : JSON.parse(body)
      if (gone.has(browserId)) return retired
      if (endpoint === 'start') return started(browserId)
      if (endpoint !== 'identify') return go
      const linked = links.get(browserId)
      if (linked && linked !== userId) return { status: 200, body: { next: 'new_browser' } }
      links.set(browserId, userId)
      return go
    },
  }
}

afterEach(() => vi.restoreAllMocks())

describe('erase', () => {
  test('retries until the server has responded, also when the recording has ended and ids are gone', async () => {
    const { links, state, reply } = server()
    const { client, to, pass, requests, stored } = page(reply)
    await pass(SECOND)
    client.identify('jane')
    await pass(SECOND)
    const [browserId] = [...links.keys()]
    state.isAway = true
    client.erase()
    client.forget()
    await pass(MINUTE)
    expect(to('withdraw').length).toBeGreaterThan(2)
    state.isAway = false
    await pass(2 * MINUTE)
    const bodies = to('withdraw').map(({ body }) => JSON.parse(body))
    expect(new Set(bodies.map(JSON.stringify as never))).toEqual(
      new Set([JSON.stringify({ browserId })]),
    )
    const count = requests.length
    await pass(HOUR)
    expect(requests.length).toBe(count)
    expect(stored()).toBeNull()
  })
})

describe('start', () => {
  test('sends once, and again while there is no response', async () => {
    let tries = 0
    const { pass, to, log } = page(({ endpoint }) =>
      endpoint === 'start' && tries++ < 3 ? undefined : endpoint === 'start' ? started() : go,
    )
    await pass(MINUTE)
    expect(to('start')).toHaveLength(4)
    expect(log).toHaveLength(1)
  })

  test('tells the address of the page without its query', async () => {
    const { pass, to } = page(() => started())
    await pass(0)
    expect(JSON.parse(to('start')[0]?.body ?? '').url).toBe('https://shop.example/p')
  })

  test('refused for good, it leaves the page alone', async () => {
    const { pass, requests, client } = page(() => ({ status: 400, body: { next: 'continue' } }))
    await pass(0)
    client.identify('jane')
    await pass(HOUR)
    expect(requests).toHaveLength(1)
  })

  test('with a browser that was retired meanwhile begins as a new one', async () => {
    const { reply, links, retire } = server()
    const first = page(reply)
    await first.pass(0)
    first.client.identify('jane')
    await first.pass(0)
    first.client.stop()
    retire('jane')
    await first.pass(31 * MINUTE)
    const second = page(reply, first)
    await second.pass(0)
    expect(second.to('start').map(({ body }) => JSON.parse(body).browserId)).toEqual([
      [...links.keys()][0],
      undefined,
    ])
    expect(second.log).toHaveLength(1)
  })
})

describe('identify', () => {
  test('calls are sent one after the other, each for itself', async () => {
    const { reply, links } = server()
    const { client, pass, to } = page(reply)
    client.identify('jane')
    client.identify('joe')
    client.identify('jane')
    await pass(0)
    expect([...links.values()]).toEqual(['jane', 'joe', 'jane'])
    expect(new Set(links.keys()).size).toBe(3)
    expect(to('start')).toHaveLength(3)
  })

  test('a call that is refused is dropped, and recording goes on', async () => {
    const { client, pass, to, log } = page(({ endpoint }) => {
      if (endpoint === 'identify') return { status: 400, body: { next: 'continue' } }
      return endpoint === 'start' ? started() : go
    })
    client.identify('jane')
    await pass(HOUR)
    expect(to('identify')).toHaveLength(1)
    expect(log).not.toContain('stop')
  })

  test('a server that always wants another browser is asked twice, then no more', async () => {
    const { client, pass, to } = page(({ endpoint }) => {
      if (endpoint === 'identify') return { status: 200, body: { next: 'new_browser' } }
      return endpoint === 'start' ? started() : go
    })
    client.identify('jane')
    await pass(MINUTE)
    expect(to('identify')).toHaveLength(2)
  })

  test('the call of a day offline does not bring back who was erased meanwhile', async () => {
    const { reply, links, state, retire } = server()
    const { client, pass, to } = page(reply)
    await pass(0)
    client.identify('jane')
    await pass(0)
    state.isAway = true
    await pass(2 * SECOND)
    client.identify('jane')
    await pass(24 * HOUR)
    retire('jane')
    state.isAway = false
    await pass(5 * MINUTE)
    expect(links.size).toBe(1)
    expect(to('start').length).toBeGreaterThan(1)
  })

  test('nor does one that waited behind another for a day', async () => {
    const { reply, links, state, retire } = server()
    const { client, pass } = page(reply)
    client.identify('jane')
    await pass(0)
    state.isAway = true
    await pass(2 * SECOND)
    client.identify('jane', 'hash')
    client.identify('jane', 'another hash')
    await pass(24 * HOUR)
    retire('jane')
    state.isAway = false
    await pass(5 * MINUTE)
    expect(links.size).toBe(1)
    client.identify('jane')
    await pass(0)
    expect(links.size).toBe(2)
  })
})

describe('somebody else', () => {
  test('named by the application ends the session in that call, also without a network', async () => {
    const { reply, links, state } = server()
    const one = page(reply)
    await one.pass(0)
    one.client.identify('jane')
    await one.pass(10 * SECOND)
    const [ofJane] = links.keys()
    state.isAway = true
    one.write('OF-JANE')
    one.client.identify('joe')
    one.write('OF-JOE')
    await one.pass(MINUTE)
    const before = one.requests.length
    state.isAway = false
    await one.pass(2 * MINUTE)
    const arrived = one.to('chunks').filter(({ at }) => at >= (one.requests[before]?.at ?? 0))
    const browsersOf = (text: string) => [
      ...new Set(
        arrived.flatMap(({ body, query }) => (body.includes(text) ? [query.browser] : [])),
      ),
    ]
    expect(browsersOf('OF-JANE')).toEqual([ofJane])
    expect(browsersOf('OF-JOE').map((browser) => links.get(browser ?? ''))).toEqual(['joe'])
    expect(browsersOf('OF-JOE')).toEqual(browsersOf('snapshot aside'))
    // One who comes back is another browser again, and their old one stays theirs.
    one.client.identify('jane')
    await one.pass(MINUTE)
    expect([...links.values()]).toEqual(['jane', 'joe', 'jane'])
  })

  test('is known over pages, and by every tab before its next event', async () => {
    const { reply, links, state } = server()
    const one = page(reply)
    await one.pass(0)
    one.client.identify('jane')
    await one.pass(10 * SECOND)
    one.leave()
    const next = page(reply, one)
    const other = page(reply, one)
    await next.pass(10 * SECOND)
    state.isAway = true
    next.client.identify('joe')
    other.write('seen to be another, and in the snapshot')
    other.write('IN-OTHER-TAB')
    await next.pass(MINUTE)
    state.isAway = false
    await next.pass(2 * MINUTE)
    const [request] = other
      .to('chunks')
      .filter(({ body }) => body.includes('IN-OTHER-TAB'))
      .slice(-1)
    expect(links.get(request?.query.browser ?? '')).toBe('joe')
    expect(other.to('start').length + next.to('start').length).toBeGreaterThan(1)
    expect(links.size).toBe(2)
  })

  test('known to the server alone gets nothing that came after the call', async () => {
    const { reply, links } = server()
    const one = page(reply)
    await one.pass(0)
    one.write('BEFORE')
    await one.pass(6 * SECOND)
    const [browser = ''] = one.to('chunks').map(({ query }) => query.browser)
    links.set(browser, 'jane')
    one.client.identify('joe')
    one.write('AFTER')
    await one.pass(MINUTE)
    const bodiesOf = (wanted: (userId: string | undefined) => boolean) =>
      one
        .to('chunks')
        .flatMap(({ body, query }) => (wanted(links.get(query.browser ?? '')) ? body : []))
    expect(bodiesOf((userId) => userId === 'jane').join('')).not.toContain('AFTER')
    expect(bodiesOf((userId) => userId === 'joe').join('')).toContain('snapshot')
  })

  test('who is refused does not count as linked', async () => {
    const one = page(({ endpoint }) => {
      if (endpoint === 'identify') return { status: 403, body: { next: 'continue' } }
      return endpoint === 'start' ? started() : go
    })
    await one.pass(0)
    one.client.identify('jane')
    one.write('STILL-SENT')
    await one.pass(MINUTE)
    expect(one.stored().linked).toBe(false)
    expect(
      one
        .to('chunks')
        .map(({ body }) => body)
        .join(''),
    ).toContain('STILL-SENT')
  })
})

describe('a retired browser', () => {
  test('stops being recorded at once, also while the new one is asked for', async () => {
    const { reply, retire, state } = server()
    const { client, pass, write, log, to } = page(reply)
    client.identify('jane')
    await pass(0)
    retire('jane')
    write('one')
    await pass(5 * SECOND)
    expect(log.map((each) => each.split(' ')[0])).toEqual(['into', 'aside'])
    expect(to('chunks').at(-1)).toMatchObject({ body: 'snapshot aside\n' })
    state.isAway = true
    write('two')
    await pass(5 * SECOND)
    state.isAway = false
    await pass(MINUTE)
    const [old] = to('chunks').map(({ query }) => query.browser)
    expect(to('chunks').at(-1)?.query.browser).not.toBe(old)
  })

  test('known from old chunks alone changes nothing for the page that runs', async () => {
    const { reply } = server()
    const unsent = { browser: 'old', session: 's', tab: 't', number: 0, text: 'x\n', events: 1 }
    const { pass, to, log } = page(
      (request) => (request.query.browser === 'old' ? retired : reply(request)),
      undefined,
      { 'lethe.unsent': JSON.stringify({ chunks: [unsent], lost: 0 }) },
    )
    await pass(MINUTE)
    expect(to('chunks').map(({ query }) => query.browser === 'old')).toEqual([true, false])
    expect(log).toHaveLength(1)
  })

  test('in two tabs becomes one new browser for both', async () => {
    const { reply, retire } = server()
    const one = page(reply)
    await one.pass(0)
    const two = page(reply, one)
    one.client.identify('jane')
    await one.pass(10 * SECOND)
    retire('jane')
    one.write('x')
    await one.pass(6 * SECOND)
    two.write('y')
    await two.pass(6 * SECOND)
    expect(one.log.at(-1)).toBe(two.log.at(-1))
    expect(two.to('start')).toHaveLength(0)
  })

  test('is followed by the other tab, also to the person identified since', async () => {
    const { reply, retire, links } = server()
    const one = page(reply)
    await one.pass(0)
    const two = page(reply, one)
    one.client.identify('jane')
    await one.pass(10 * SECOND)
    retire('jane')
    one.write('x')
    await one.pass(6 * SECOND)
    one.client.identify('joe')
    await one.pass(6 * SECOND)
    two.write('y')
    await two.pass(6 * SECOND)
    const { browserId } = one.stored()
    expect(links.get(browserId)).toBe('joe')
    expect(two.to('chunks').at(-1)?.query.browser).toBe(browserId)
    expect(two.to('start')).toHaveLength(0)
  })
})

describe('reset', () => {
  test('is not undone by another tab that goes on as it was', async () => {
    const { reply } = server()
    const one = page(reply)
    await one.pass(0)
    const two = page(reply, one)
    await two.pass(0)
    const before = one.stored().browserId
    one.client.reset()
    two.act()
    await one.pass(MINUTE)
    expect(one.stored().browserId).not.toBe(before)
    two.write('LATER')
    await two.pass(MINUTE)
    expect(two.log.slice(1)).toEqual(['aside'])
    expect(two.to('chunks').at(-1)).toMatchObject({ query: { browser: one.stored().browserId } })
  })
})

describe('a tab that is offline for a day', () => {
  test('keeps 16 MB, records no longer than a session may, and brings all of it once', async () => {
    const { reply, state } = server()
    const arrived: Request[] = []
    const { pass, act, write, log, timers, clock } = page((request) => {
      const answer = reply(request)
      if (answer && request.endpoint === 'chunks') arrived.push(request)
      return answer
    })
    await pass(0)
    const begun = clock.now
    const written: string[] = []
    const day = async (minutes: number, characters: number) => {
      for (let minute = 0; minute < minutes; minute++) {
        act()
        const text = `event ${written.length} at ${clock.now} ${'x'.repeat(characters)}`
        if (log.at(-1)?.startsWith('into')) {
          write(text)
          written.push(text)
        }
        await pass(MINUTE)
        expect(timers.size).toBeLessThanOrEqual(4)
      }
    }
    await day(60, 2_000)
    state.isAway = true
    await day(24 * 60, 8_000)
    // The session was over after a day, and no other could be begun.
    expect(log.at(-1)).toBe('pause offline')
    const last = Math.max(...written.map((text) => Number(text.split(' ')[3])))
    expect(last - begun).toBeLessThan(24 * HOUR + MINUTE)
    expect(written.length).toBeGreaterThan(23 * 60)

    state.isAway = false
    await day(10, 100)
    const events = arrived.flatMap(({ body, query }) =>
      body.split('\n').flatMap((line) => (line.startsWith('event') ? [[line, query.session]] : [])),
    )
    expect(events.map(([line]) => line)).toEqual(written)
    // What came after the day belongs to another session, which begins with a snapshot.
    const [first, second] = [...new Set(events.map(([, session]) => session))]
    expect(log.filter((each) => each.startsWith('into')).map((each) => each.split(' ')[2])).toEqual(
      [first, second],
    )
    const numbers = arrived.map(({ query }) => Number(query.number))
    expect(numbers).toEqual(numbers.map((_, at) => at))
  })

  test('leaves no more than 2 MB in the tab when it is closed, the oldest first', async () => {
    const { reply, state } = server()
    const { pass, act, write, platform, leave } = page(reply)
    await pass(0)
    state.isAway = true
    for (let minute = 0; minute < 600; minute++) {
      act()
      write(`event ${minute} ${'x'.repeat(9_000)}`)
      await pass(MINUTE)
    }
    platform.takesBeacons = false
    leave()
    const kept = platform.tab.get('lethe.unsent') ?? ''
    expect(kept.length).toBeGreaterThan(1_500_000)
    expect(kept.length).toBeLessThan(2_800_000)
    const { chunks, lost } = JSON.parse(kept)
    expect(chunks.length + lost).toBeGreaterThanOrEqual(600)
    expect(chunks.length).toBeGreaterThan(100)
    expect(JSON.stringify(platform.shared.get('lethe.pk_x')).length).toBeLessThan(1_000)

    // The next page of the tab delivers it, and what is missing is said and not made up.
    const arrived: Request[] = []
    const next = page(
      (request) => {
        if (request.endpoint === 'chunks') arrived.push(request)
        return go
      },
      undefined,
      { 'lethe.unsent': kept, 'lethe.tab': platform.tab.get('lethe.tab') ?? '' },
    )
    next.platform.shared.set('lethe.pk_x', platform.shared.get('lethe.pk_x') ?? '')
    await next.pass(10 * MINUTE)
    const texts = arrived.map(({ body }) => body)
    const events = texts.flatMap((text) => /event (\d+) /.exec(text)?.[1] ?? [])
    expect(events).toEqual(events.map((_, at) => String(at)))
    expect(events.length).toBeGreaterThan(100)
    expect(next.platform.tab.get('lethe.unsent')).toBeUndefined()
    const payload = { reason: 'buffer_full', events: lost }
    expect(texts.join('')).toContain(JSON.stringify({ tag: 'lethe:dropped', payload }))
  })
})

describe('sessions', () => {
  test('are one for two tabs, also when both find it over', async () => {
    const { reply } = server()
    const one = page(reply)
    await one.pass(0)
    const two = page(reply, one)
    await two.pass(31 * MINUTE)
    one.act()
    two.act()
    await one.pass(0)
    expect(one.log.at(-1)).toBe(two.log.at(-1))
    expect(one.log.at(-1)).not.toBe(one.log[0])
  })

  test('go on while somebody is there in any tab', async () => {
    const { reply } = server()
    const one = page(reply)
    await one.pass(0)
    const two = page(reply, one)
    for (let minute = 0; minute < 60; minute++) {
      two.act()
      await one.pass(MINUTE)
    }
    one.act()
    await one.pass(0)
    expect(one.to('start').length + two.to('start').length).toBe(1)
    expect(one.log.at(-1)).toBe(two.log.at(-1))
  })

  test('follow one another without end over days, each within its longest time', async () => {
    const { reply } = server()
    const { pass, act, to } = page(reply)
    for (let minutes = 0; minutes < 3 * 24 * 60 - 60; minutes += 4) {
      act()
      await pass(4 * MINUTE)
    }
    const starts = to('start')
    expect(starts).toHaveLength(3)
    expect(new Set(starts.slice(1).map(({ body }) => JSON.parse(body).browserId)).size).toBe(1)
  })

  test('pause when nobody is there, and no timer runs then', async () => {
    const { reply } = server()
    const { pass, log, timers, act } = page(reply)
    await pass(6 * MINUTE)
    expect(log.at(-1)).toBe('pause idle')
    expect(timers.size).toBe(0)
    act()
    await pass(0)
    expect(log.at(-1)).toBe(log[0])
  })

  test('that are not sampled ask for no recorder', async () => {
    const { pass, log } = page(({ endpoint }) => {
      const { status, body } = started()
      return endpoint === 'start'
        ? { status, body: { ...body, settings: { ...settings, sampleRate: 0 } } }
        : go
    })
    await pass(MINUTE)
    expect(log).toEqual([])
  })
})
