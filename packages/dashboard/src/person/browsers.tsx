import { listPersonBrowsers } from '@lethe/contract/dashboard-persons.ts'
import { Link } from '@tanstack/react-router'
import { useLiveList } from '../api/live-list.ts'
import { listing } from '../api/queries.ts'
import { count, counted } from '../design/number.ts'
import { Empty, ErrorPanel, Skeletons } from '../design/states.tsx'
import { Cell, Head, ListEnd, None, Row, Table } from '../design/table.tsx'
import { Time } from '../design/time.tsx'
import { browserText } from '../sessions/user-agent.ts'
import { usePersonPath } from './query.ts'

export function PersonBrowsers() {
  const { projectId, personId } = usePersonPath()
  const list = useLiveList(
    listing(listPersonBrowsers, { params: { projectId, personId }, query: {} }),
    (page) => page.browsers,
  )
  const rows = list.rows ?? []
  if (list.isPending) return <Skeletons rows={3} className="h-7" />
  if (list.isError && !list.data) {
    return (
      <ErrorPanel
        error={list.error}
        title="The browsers could not be loaded"
        retry={() => list.refetch()}
      />
    )
  }
  if (rows.length === 0) {
    return (
      <Empty icon="browser" title="No browsers">
        A browser belongs to a person once it calls identify() with the person’s externalId, and
        then for ever.
      </Empty>
    )
  }
  return (
    <>
      <Table label="Browsers of this person">
        <thead>
          <tr>
            <Head>Browser</Head>
            <Head from="md">First seen</Head>
            <Head from="sm">Identified</Head>
            <Head from="md">Last seen</Head>
            <Head isNumber>Sessions</Head>
          </tr>
        </thead>
        <tbody>
          {rows.map((browser) => (
            <Row key={browser.id}>
              <Cell>
                <span className="font-medium">{browserText(browser.userAgent)}</span>
                <code className="block font-mono text-xs text-muted">{browser.id.slice(0, 8)}</code>
              </Cell>
              <Cell from="md" className="text-muted">
                <Time at={browser.createdAt} />
              </Cell>
              <Cell from="sm" className="text-muted">
                <Time at={browser.linkedAt} />
              </Cell>
              <Cell from="md">
                {browser.lastSeenAt ? <Time at={browser.lastSeenAt} as="ago" /> : <None />}
              </Cell>
              <Cell isNumber>
                {browser.sessions > 0 ? (
                  <Link
                    to="/projects/$projectId/sessions"
                    params={{ projectId }}
                    search={{ browser: browser.id }}
                    className="link"
                  >
                    {count(browser.sessions)}
                    <span className="sr-only"> sessions of this browser</span>
                  </Link>
                ) : (
                  <None />
                )}
              </Cell>
            </Row>
          ))}
        </tbody>
      </Table>
      <ListEnd
        hasMore={list.hasNextPage}
        isLoading={list.isFetchingNextPage}
        onMore={() => void list.fetchNextPage()}
      >
        {counted(rows.length, 'browser')}
      </ListEnd>
    </>
  )
}
