import { listPersonBrowsers, type PersonBrowser } from '@lethe/contract/dashboard-persons.ts'
import { Link } from '@tanstack/react-router'
import { useLiveList } from '../api/live-list.ts'
import { useProjectId } from '../api/projects.ts'
import { listing } from '../api/queries.ts'
import { Icon } from '../design/icon.tsx'
import { List } from '../design/list.tsx'
import { count } from '../design/number.ts'
import { Empty } from '../design/states.tsx'
import { Cell, Head, None, Row, Table } from '../design/table.tsx'
import { Time } from '../design/time.tsx'
import { browserText } from '../sessions/user-agent.ts'
import { usePersonPath } from './query.ts'

export function PersonBrowsers() {
  const { projectId, personId } = usePersonPath()
  const list = useLiveList(
    listing(listPersonBrowsers, { params: { projectId, personId }, query: {} }),
    (page) => page.browsers,
  )
  return (
    <List
      list={list}
      names={['browser', 'browsers']}
      empty={
        <Empty icon="browser" title="No browsers">
          A browser is linked to a person permanently when it calls identify() with the person’s
          external ID.
        </Empty>
      }
    >
      {(rows) => (
        <>
          <LimitLine limit={list.data?.pages[0]?.limitReached ?? null} />
          <BrowserTable browsers={rows} />
        </>
      )}
    </List>
  )
}

/** Other browsers that name this person record nothing: somebody has to be told. */
function LimitLine({ limit }: { limit: number | null }) {
  if (limit === null) return null
  return (
    <p className="flex items-start gap-2 border-b border-line bg-warn-soft px-4 py-2.5 text-warn">
      <Icon name="warning" className="mt-0.5 size-4" />
      This person has reached the limit of {count(limit)} browsers. Other browsers identified as
      this person aren’t recorded.
    </p>
  )
}

function BrowserTable({ browsers }: { browsers: PersonBrowser[] }) {
  const projectId = useProjectId()
  return (
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
        {browsers.map((browser) => (
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
  )
}
