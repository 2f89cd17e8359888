import { type DashboardKey, listKeys } from '@lethe/contract/dashboard-projects.ts'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { needsPermission, useMay } from '../api/me.ts'
import { useProjectId } from '../api/projects.ts'
import { liveMilliseconds, reading } from '../api/queries.ts'
import { Button, IconButton } from '../design/button.tsx'
import { Chip } from '../design/chip.tsx'
import { CopyButton } from '../design/copy.tsx'
import { Menu, MenuItem } from '../design/menu.tsx'
import { Panel, useTitle } from '../design/page.tsx'
import { Awaited } from '../design/states.tsx'
import { ActionsHead, Cell, Head, None, Row, Table } from '../design/table.tsx'
import { Time } from '../design/time.tsx'
import { CreateKey, OriginsDialog, RevokeKey, RotateKey } from './key-dialogs.tsx'

type Asking = { what: 'create' | 'rotate' | 'revoke' | 'origins'; key: DashboardKey | null }

export function Keys() {
  useTitle('Keys')
  const projectId = useProjectId()
  const mayWrite = useMay('keys.write')
  const [asking, setAsking] = useState<Asking | null>(null)
  const { data, error, refetch } = useQuery({
    ...reading(listKeys, { params: { projectId } }),
    refetchInterval: liveMilliseconds,
  })
  const close = () => setAsking(null)
  return (
    <>
      <Panel
        title="Keys"
        description="Secret keys are for your backend and have full access to this project. Public keys go in your pages and can only record."
        actions={
          <Button
            icon="plus"
            look="primary"
            disabledReason={mayWrite ? undefined : needsPermission['keys.write']}
            onClick={() => setAsking({ what: 'create', key: null })}
          >
            New key
          </Button>
        }
      >
        {data ? (
          <KeyTable
            keys={data.keys}
            onAsk={mayWrite ? (what, key) => setAsking({ what, key }) : undefined}
          />
        ) : (
          <Awaited
            error={error}
            title="Keys could not be loaded"
            retry={refetch}
            rows={3}
            className="h-7"
          />
        )}
      </Panel>
      <CreateKey isOpen={asking?.what === 'create'} onClose={close} />
      <RotateKey of={asking?.what === 'rotate' ? asking.key : null} onClose={close} />
      <RevokeKey of={asking?.what === 'revoke' ? asking.key : null} onClose={close} />
      <OriginsDialog of={asking?.what === 'origins' ? asking.key : null} onClose={close} />
    </>
  )
}

function KeyTable({
  keys,
  onAsk,
}: {
  keys: DashboardKey[]
  onAsk: ((what: Asking['what'], key: DashboardKey) => void) | undefined
}) {
  return (
    <div className="border-t border-line">
      <Table label="Keys">
        <thead>
          <tr>
            <Head>Name</Head>
            <Head from="sm">Key</Head>
            <Head from="md">Last used</Head>
            <Head from="lg">Created</Head>
            <Head>State</Head>
            {onAsk && <ActionsHead />}
          </tr>
        </thead>
        <tbody>
          {keys.map((key) => (
            <Row key={key.id} className={key.state === 'ended' ? 'text-muted' : ''}>
              <Cell>
                <span className="font-medium break-words">{key.name}</span>
                <span className="block text-sm text-muted">
                  {key.kind === 'secret' ? 'Secret' : 'Public'}
                  {key.kind === 'public' &&
                    (key.allowedOrigins ? ` · ${key.allowedOrigins.join(', ')}` : ' · any origin')}
                </span>
              </Cell>
              <Cell from="sm">
                <span className="flex items-center gap-1">
                  <code className="font-mono text-sm whitespace-nowrap">
                    {key.kind === 'secret' ? 'sk_' : 'pk_'}…{key.last4}
                  </code>
                  {key.publicText && <CopyButton text={key.publicText} label="Copy key" />}
                </span>
              </Cell>
              <Cell from="md">
                {key.lastUsedAt ? <Time at={key.lastUsedAt} as="ago" /> : <None />}
              </Cell>
              <Cell from="lg" className="text-muted">
                <Time at={key.createdAt} />
              </Cell>
              <Cell>
                <KeyState of={key} />
              </Cell>
              {onAsk && (
                <Cell className="w-0">
                  {key.state !== 'ended' && <KeyMenu of={key} onAsk={onAsk} />}
                </Cell>
              )}
            </Row>
          ))}
        </tbody>
      </Table>
    </div>
  )
}

function KeyMenu({
  of: key,
  onAsk,
}: {
  of: DashboardKey
  onAsk: (what: Asking['what'], key: DashboardKey) => void
}) {
  return (
    <Menu trigger={<IconButton label={`Actions for the key ${key.name}`} icon="more" />}>
      <MenuItem icon="refresh" onClick={() => onAsk('rotate', key)}>
        Rotate…
      </MenuItem>
      {key.kind === 'public' && (
        <MenuItem icon="browser" onClick={() => onAsk('origins', key)}>
          Name and origins…
        </MenuItem>
      )}
      <MenuItem icon="close" tone="danger" onClick={() => onAsk('revoke', key)}>
        Revoke…
      </MenuItem>
    </Menu>
  )
}

function KeyState({ of: key }: { of: DashboardKey }) {
  if (key.state === 'working') return <Chip tone="quiet">Active</Chip>
  if (key.state === 'ended') return <Chip>{key.revokedAt ? 'Revoked' : 'Expired'}</Chip>
  return (
    <>
      <Chip tone="warn">Expiring</Chip>
      {key.expiresAt && (
        <span className="mt-0.5 block text-xs whitespace-nowrap text-muted">
          <Time at={key.expiresAt} />
        </span>
      )}
    </>
  )
}
