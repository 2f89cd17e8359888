import { checkLink } from '@lethe/contract/dashboard-members.ts'
import { useQuery } from '@tanstack/react-query'
import { type ReactNode, useEffect, useState } from 'react'
import { type Body, codeOf, send } from '../api/call.ts'
import { Awaited } from '../design/states.tsx'
import { DeadEnd, SignInFrame } from './frame.tsx'

export type Link = Body<typeof checkLink> & { token: string }

/**
 * Shows what a one-time link leads to. Its token is the fragment of the address, which no server
 * and no log sees; it is taken off the address at once, so that no history keeps it.
 */
export function WithLink({
  kind,
  whenMissing,
  children,
}: {
  kind: Link['kind']
  whenMissing: ReactNode
  children: (link: Link) => ReactNode
}) {
  const token = useToken()
  const { data, error, refetch } = useQuery({
    queryKey: ['link', token],
    queryFn: () => send(checkLink, { body: { token } }),
    enabled: token !== '',
    staleTime: Number.POSITIVE_INFINITY,
  })
  if (token === '') return whenMissing
  if (data && data.kind === kind) return children({ ...data, token })
  if (data || codeOf(error) === 'link_invalid') return <Invalid />
  return (
    <SignInFrame title="One moment">
      {<Awaited error={error} title="The link could not be checked" retry={refetch} rows={4} />}
    </SignInFrame>
  )
}

/** Kept outside of React, which looks at the address again after it was cleaned. */
const tokens = new Map<string, string>()

function takeToken(): string {
  const { pathname, search, hash } = window.location
  if (hash.length > 1) {
    // Tokens need no encoding, so a broken one is a broken link and no reason to stop.
    tokens.set(pathname, hash.slice(1))
    window.history.replaceState(window.history.state, '', pathname + search)
  }
  return tokens.get(pathname) ?? ''
}

export function useToken(): string {
  const [token, setToken] = useState(takeToken)
  // The link opened in a tab that shows this page already changes nothing but the fragment.
  useEffect(() => {
    const take = () => setToken(takeToken())
    window.addEventListener('hashchange', take)
    return () => window.removeEventListener('hashchange', take)
  }, [])
  return token
}

function Invalid() {
  return (
    <DeadEnd
      title="This link no longer works"
      description="It was already used or has expired. Ask the person who gave it to you for a new one."
    />
  )
}
