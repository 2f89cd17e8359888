import type { PersonDetail } from '@lethe/contract/dashboard-persons.ts'
import { useState } from 'react'
import { needsPermission, useMay } from '../api/me.ts'
import { Button, IconButton } from '../design/button.tsx'
import { CopyButton } from '../design/copy.tsx'
import { ConfirmDialog } from '../design/dialog-form.tsx'
import { Empty } from '../design/states.tsx'
import { ActionsHead, Cell, Head, Row, Table } from '../design/table.tsx'
import { say } from '../design/toast.tsx'
import { PropertyDialog } from './property-dialog.tsx'
import { kindNames, kindOf, textOf } from './property-value.ts'
import { usePerson, useUpdate } from './query.ts'

export function PersonProperties() {
  const { data } = usePerson()
  return data?.person ? <PropertyList person={data.person} /> : null
}

/** Why the properties cannot be changed now; undefined: they can. */
function useReason(person: PersonDetail): string | undefined {
  const mayWrite = useMay('persons.write')
  if (!mayWrite) return needsPermission['persons.write']
  if (person.state === 'deleting') {
    return 'This person is being deleted and can no longer be changed.'
  }
  return undefined
}

function PropertyList({ person }: { person: PersonDetail }) {
  const reason = useReason(person)
  const [editing, setEditing] = useState<{ key: string | null } | null>(null)
  const [removing, setRemoving] = useState<string | null>(null)
  const entries = Object.entries(person.properties).sort(([one], [other]) => compare(one, other))
  const add = (
    <Button
      size="small"
      icon="plus"
      disabledReason={reason}
      onClick={() => setEditing({ key: null })}
    >
      Add property
    </Button>
  )
  return (
    <>
      {entries.length === 0 ? (
        <Empty icon="list" title="No properties" actions={add}>
          Properties describe this person: name, email, plan, anything your support team needs. Set
          them from your backend with the API, or here.
        </Empty>
      ) : (
        <>
          <div className="flex justify-end px-4 py-2.5">{add}</div>
          <Table label="Properties" className="border-t border-line">
            <thead>
              <tr>
                <Head from="sm">Key</Head>
                <Head>Value</Head>
                <Head from="sm">Type</Head>
                <ActionsHead />
              </tr>
            </thead>
            <tbody>
              {entries.map(([key, value]) => (
                <PropertyRow
                  key={key}
                  name={key}
                  value={value}
                  reason={reason}
                  onEdit={() => setEditing({ key })}
                  onRemove={() => setRemoving(key)}
                />
              ))}
            </tbody>
          </Table>
        </>
      )}
      <PropertyDialog person={person} editing={editing} onClose={() => setEditing(null)} />
      <RemoveDialog name={removing} onClose={() => setRemoving(null)} />
    </>
  )
}

/** name and email first: they are what a person is found by. */
function compare(one: string, other: string): number {
  const first = (key: string) => (key === 'name' ? 0 : key === 'email' ? 1 : 2)
  return first(one) - first(other) || (one < other ? -1 : 1)
}

function PropertyRow({
  name,
  value,
  reason,
  onEdit,
  onRemove,
}: {
  name: string
  value: unknown
  reason: string | undefined
  onEdit: () => void
  onRemove: () => void
}) {
  const kind = kindOf(value)
  const text = textOf(value)
  return (
    <Row>
      <Cell from="sm" className="w-[30%] max-w-0 align-baseline">
        <span className="block font-mono text-sm break-all whitespace-pre-wrap">{name}</span>
      </Cell>
      <Cell className="max-w-0 align-baseline">
        <span className="block font-mono text-xs break-all whitespace-pre-wrap text-muted sm:hidden">
          {name}
        </span>
        <span className="flex items-start gap-1">
          <span
            className={`min-w-0 break-words whitespace-pre-wrap ${kind === 'json' || kind === 'number' ? 'font-mono text-sm' : ''}`}
          >
            {text === '' ? <span className="text-muted">empty</span> : text}
          </span>
          {text !== '' && (
            <CopyButton
              text={text}
              label={`Copy the value of ${name}`}
              className="opacity-0 group-hover:opacity-100 focus-visible:opacity-100"
            />
          )}
        </span>
      </Cell>
      <Cell from="sm" className="w-28 align-baseline text-muted">
        {kindNames[kind]}
      </Cell>
      <Cell className="w-0 align-baseline">
        {reason === undefined && (
          <span className="-my-1 flex justify-end">
            <IconButton label={`Edit ${name}`} icon="pencil" onClick={onEdit} />
            <IconButton label={`Remove ${name}`} icon="deletions" onClick={onRemove} />
          </span>
        )}
      </Cell>
    </Row>
  )
}

function RemoveDialog({ name, onClose }: { name: string | null; onClose: () => void }) {
  const removing = useUpdate(() => {
    say('Property removed')
    onClose()
  })
  return (
    <ConfirmDialog
      isOpen={name !== null}
      title="Remove this property?"
      description={
        <>
          <code className="font-mono text-sm break-all">{name}</code> and its value will be removed.
          Your backend can set it again.
        </>
      }
      action="Remove property"
      doing={removing}
      onSubmit={() => name !== null && removing.mutate({ [name]: null })}
      onClose={onClose}
    />
  )
}
