import {
  type Invitation,
  listMembers,
  type Member,
  withdrawInvitation,
} from '@lethe/contract/dashboard-members.ts'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { useAction } from '../api/action.ts'
import { needsPermission, useMay, useMe } from '../api/me.ts'
import { liveMilliseconds, reading } from '../api/queries.ts'
import { Button, IconButton } from '../design/button.tsx'
import { Chip, Tag } from '../design/chip.tsx'
import { Menu, MenuItem, MenuLine } from '../design/menu.tsx'
import { Panel, useTitle } from '../design/page.tsx'
import { Awaited } from '../design/states.tsx'
import { ActionsHead, Cell, Head, None, Row, Table } from '../design/table.tsx'
import { Time } from '../design/time.tsx'
import { say } from '../design/toast.tsx'
import { roleNames } from '../shell/member-menu.tsx'
import { EditMember, InviteMember, RemoveMember, ResetLink } from './member-dialogs.tsx'

type Asking = { what: 'edit' | 'remove' | 'reset'; member: Member }

export function Members() {
  useTitle('Members')
  const mayWrite = useMay('members.write')
  const [isInviting, setInviting] = useState(false)
  const [asking, setAsking] = useState<Asking | null>(null)
  const { data, error, refetch } = useQuery({
    ...reading(listMembers, {}),
    refetchInterval: liveMilliseconds,
  })
  const close = () => setAsking(null)
  return (
    <>
      <Panel
        title="Members"
        description="Everyone who can sign in to this installation. Deleting people is a separate permission for every role."
        actions={
          <Button
            icon="plus"
            look="primary"
            disabledReason={mayWrite ? undefined : needsPermission['members.write']}
            onClick={() => setInviting(true)}
          >
            Invite member
          </Button>
        }
      >
        {data ? (
          <MemberTable
            members={data.members}
            onAsk={mayWrite ? (what, member) => setAsking({ what, member }) : undefined}
          />
        ) : (
          <Awaited
            error={error}
            title="Members could not be loaded"
            retry={refetch}
            rows={3}
            className="h-7"
          />
        )}
      </Panel>
      {data && data.invitations.length > 0 && (
        <Invitations invitations={data.invitations} mayWrite={mayWrite} />
      )}
      <InviteMember isOpen={isInviting} onClose={() => setInviting(false)} />
      <EditMember of={asking?.what === 'edit' ? asking.member : null} onClose={close} />
      <RemoveMember of={asking?.what === 'remove' ? asking.member : null} onClose={close} />
      <ResetLink of={asking?.what === 'reset' ? asking.member : null} onClose={close} />
    </>
  )
}

/** As the server decides it: only owners change owners, and nobody gives what they do not have. */
function mayManage(me: Member, other: Pick<Member, 'role' | 'mayDeletePersons'>): boolean {
  if (me.role === 'owner') return true
  return other.role !== 'owner' && (me.mayDeletePersons || !other.mayDeletePersons)
}

function MemberTable({
  members,
  onAsk,
}: {
  members: Member[]
  onAsk: ((what: Asking['what'], member: Member) => void) | undefined
}) {
  const me = useMe().member
  return (
    <div className="border-t border-line">
      <Table label="Members">
        <thead>
          <tr>
            <Head>Member</Head>
            <Head>Role</Head>
            <Head from="md">Deletes people</Head>
            <Head from="md">Two-factor</Head>
            <Head from="lg">Last sign-in</Head>
            {onAsk && <ActionsHead />}
          </tr>
        </thead>
        <tbody>
          {members.map((member) => (
            <Row key={member.id}>
              <Cell className="w-[40%] max-w-0">
                <span className="flex items-center gap-2">
                  <span className="truncate font-medium">{member.name}</span>
                  {member.id === me?.id && <Tag>you</Tag>}
                </span>
                <span className="block truncate text-sm text-muted">{member.email}</span>
              </Cell>
              <Cell>{roleNames[member.role]}</Cell>
              <Cell from="md">
                {member.mayDeletePersons ? <Chip tone="accent">Yes</Chip> : <Chip>No</Chip>}
              </Cell>
              <Cell from="md">
                {member.hasSecondFactor ? <Chip tone="ok">On</Chip> : <Chip>Off</Chip>}
              </Cell>
              <Cell from="lg" className="text-muted">
                {member.lastSignInAt ? <Time at={member.lastSignInAt} as="ago" /> : <None />}
              </Cell>
              {onAsk && (
                <Cell className="w-0">
                  {me && mayManage(me, member) && (
                    <Menu trigger={<IconButton label={`Actions for ${member.name}`} icon="more" />}>
                      <MenuItem icon="pencil" onClick={() => onAsk('edit', member)}>
                        Edit role and permissions…
                      </MenuItem>
                      {member.id !== me.id && (
                        <MenuItem icon="key" onClick={() => onAsk('reset', member)}>
                          Create reset link…
                        </MenuItem>
                      )}
                      <MenuLine />
                      <MenuItem icon="close" tone="danger" onClick={() => onAsk('remove', member)}>
                        Remove…
                      </MenuItem>
                    </Menu>
                  )}
                </Cell>
              )}
            </Row>
          ))}
        </tbody>
      </Table>
    </div>
  )
}

function Invitations({ invitations, mayWrite }: { invitations: Invitation[]; mayWrite: boolean }) {
  const me = useMe().member
  const withdrawing = useAction(
    withdrawInvitation,
    () => say('Invitation withdrawn'),
    'The invitation could not be withdrawn',
  )
  return (
    <Panel title="Invitations" description="Invitation links that have not been used yet.">
      <ul className="border-t border-line">
        {invitations.map((invitation) => (
          <li
            key={invitation.id}
            className="flex flex-wrap items-center justify-between gap-x-4 gap-y-1 border-b border-line px-4 py-2.5 last:border-b-0"
          >
            <span className="min-w-0">
              <span className="font-medium break-all">{invitation.email}</span>
              <span className="block text-sm text-muted">
                {roleNames[invitation.role]}
                {invitation.mayDeletePersons && ', can delete people'} · expires{' '}
                <Time at={invitation.expiresAt} />
              </span>
            </span>
            {mayWrite && me && mayManage(me, invitation) && (
              <Button
                size="small"
                look="quiet"
                isBusy={
                  withdrawing.isPending &&
                  withdrawing.variables.params.invitationId === invitation.id
                }
                onClick={() => withdrawing.mutate({ params: { invitationId: invitation.id } })}
              >
                Withdraw
              </Button>
            )}
          </li>
        ))}
      </ul>
    </Panel>
  )
}
