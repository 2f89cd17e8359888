import { useLiveList } from '../api/live-list.ts'
import { useProjectId } from '../api/projects.ts'
import { LinkButton } from '../design/button.tsx'
import { List } from '../design/list.tsx'
import { Empty } from '../design/states.tsx'
import { personSessionsList } from '../sessions/query.ts'
import { SessionTable } from '../sessions/table.tsx'
import { usePersonPath } from './query.ts'

export function PersonSessions() {
  const { projectId, personId } = usePersonPath()
  const list = useLiveList(personSessionsList(projectId, personId), (page) => page.sessions)
  return (
    <List list={list} names={['session', 'sessions']} empty={<NoSessions />} isRemembered>
      {(rows) => <SessionTable sessions={rows} isOfPerson />}
    </List>
  )
}

function NoSessions() {
  const projectId = useProjectId()
  return (
    <Empty
      icon="sessions"
      title="No sessions"
      actions={
        <LinkButton to="/projects/$projectId/install" params={{ projectId }}>
          How recording works
        </LinkButton>
      }
    >
      This person has not been recorded: no browser has called identify() with this external ID.
    </Empty>
  )
}
