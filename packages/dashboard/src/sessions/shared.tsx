import { getSharedEvents, openShared } from '@lethe/contract/dashboard-moments.ts'
import { useQuery } from '@tanstack/react-query'
import { useCallback, useState } from 'react'
import { type Body, codeOf, send } from '../api/call.ts'
import { Logo } from '../design/icon.tsx'
import { useTitle } from '../design/page.tsx'
import { Awaited, Empty } from '../design/states.tsx'
import { Time } from '../design/time.tsx'
import { createPlayer } from '../replay/player.ts'
import { useToken } from '../sign-in/link.tsx'
import { type Load, Watch } from './watch.tsx'

/** A recording as somebody without an account sees it, by a link. */
export function Shared() {
  useTitle('Shared recording')
  const token = useToken()
  const { data, error, refetch } = useQuery({
    queryKey: ['shared', token],
    queryFn: () => send(openShared, { body: { token } }),
    enabled: token !== '',
    staleTime: Number.POSITIVE_INFINITY,
    refetchOnWindowFocus: false,
  })
  const isGone = token === '' || codeOf(error) === 'link_invalid'
  return (
    <main tabIndex={-1} className="flex min-h-dvh flex-col px-4 py-5 outline-none sm:px-6 xl:h-dvh">
      <header className="mb-3 flex flex-wrap items-center gap-x-4 gap-y-1">
        <Logo />
        <h1 className="text-lg">Shared recording</h1>
        {data && (
          <p className="text-sm text-muted">
            Recorded <Time at={data.startedAt} />. This link expires <Time at={data.expiresAt} />.
          </p>
        )}
      </header>
      {isGone ? (
        <Empty isPage icon="sessions" title="This link doesn’t work">
          It expired or was revoked, its recording was deleted, or part of the link is missing.
        </Empty>
      ) : data ? (
        <SharedReplay shared={data} token={token} />
      ) : (
        <Awaited error={error} title="The recording could not be loaded" retry={refetch} rows={6} />
      )}
    </main>
  )
}

function SharedReplay({ shared, token }: { shared: Body<typeof openShared>; token: string }) {
  const [start, setStart] = useState(0)
  return (
    <SharedPlayer
      key={start}
      shared={shared}
      token={token}
      onRestart={() => setStart((before) => before + 1)}
    />
  )
}

function SharedPlayer({
  shared,
  token,
  onRestart,
}: {
  shared: Body<typeof openShared>
  token: string
  onRestart: () => void
}) {
  const [player] = useState(() => createPlayer(shared.at))
  const [tabId, setTabId] = useState<string>()
  const load = useCallback<Load>(
    (tab, _, signal) =>
      fetch(getSharedEvents.url, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ token, tab }),
        signal,
      }),
    [token],
  )
  return (
    <Watch
      player={player}
      tabs={shared.tabs}
      load={load}
      tabId={tabId}
      onTab={setTabId}
      onRestart={onRestart}
    />
  )
}
