import { previewDeletion, requestDeletions } from '@lethe/contract/dashboard-deletions.ts'
import type { PersonSummary } from '@lethe/contract/dashboard-persons.ts'
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { type ReactNode, useState } from 'react'
import { useSending } from '../api/action.ts'
import { type Body, send } from '../api/call.ts'
import { useProjectId } from '../api/projects.ts'
import { CopyButton } from '../design/copy.tsx'
import { Dialog } from '../design/dialog.tsx'
import { DialogForm } from '../design/dialog-form.tsx'
import { RadioCard, TextField } from '../design/field.tsx'
import { Icon } from '../design/icon.tsx'
import { ExternalId, nameOf, shownId } from '../design/name.tsx'
import { bytesText, counted } from '../design/number.ts'
import { say } from '../design/toast.tsx'

export type Deletable = Pick<PersonSummary, 'id' | 'externalId' | 'name' | 'email'>
type Preview = Body<typeof previewDeletion>

/** As many as one request may name. */
const personsMaximum = 100

/** Asks what shall go, and for a confirmation that cannot be given by accident. */
export function DeleteDialog({
  persons,
  keepRecordings = false,
  onClose,
  onDone,
}: {
  persons: Deletable[]
  /** What is chosen at first. */
  keepRecordings?: boolean
  onClose: () => void
  onDone?: () => void
}) {
  const [first] = persons
  return (
    <Dialog
      isOpen={first !== undefined}
      onClose={onClose}
      title={
        persons.length > 1
          ? `Delete ${counted(persons.length, 'person', 'people')}?`
          : first && (
              <>
                Delete <bdi>{nameOf(first)}</bdi>?
              </>
            )
      }
    >
      {first && (
        <DeleteForm
          key={first.id}
          persons={persons}
          first={first}
          keepsAtFirst={keepRecordings}
          onClose={onClose}
          onDone={onDone}
        />
      )}
    </Dialog>
  )
}

function DeleteForm({
  persons,
  first,
  keepsAtFirst,
  onClose,
  onDone,
}: {
  persons: Deletable[]
  first: Deletable
  keepsAtFirst: boolean
  onClose: () => void
  onDone: (() => void) | undefined
}) {
  const [keepRecordings, setKeep] = useState(keepsAtFirst)
  const [typed, setTyped] = useState('')
  const preview = usePreview(persons)
  const requesting = useRequest(persons, keepRecordings, () => {
    onDone?.()
    onClose()
  })
  const isOne = persons.length === 1
  const phrase = phraseOf(persons, first)
  const isConfirmed = typed === phrase
  return (
    <DialogForm
      action={buttonText(persons.length, preview.data, keepRecordings)}
      look="danger"
      doing={{ isPending: requesting.isPending, error: requesting.error ?? preview.error }}
      disabledReason={
        isConfirmed
          ? undefined
          : `Type the ${phrase === first.externalId ? 'external ID' : 'words above'} to confirm.`
      }
      onSubmit={() => {
        if (isConfirmed) requesting.mutate()
      }}
      onClose={onClose}
    >
      <fieldset className="grid gap-2.5">
        <legend className="sr-only">What to delete</legend>
        <RadioCard
          name="scope"
          tone="danger"
          title={isOne ? 'Person and recordings' : 'People and recordings'}
          checked={!keepRecordings}
          onChange={() => setKeep(false)}
        >
          <WhatGoes preview={preview.data} isOne={isOne} />
        </RadioCard>
        <RadioCard
          name="scope"
          title={
            isOne
              ? 'Person only, keep recordings anonymous'
              : 'People only, keep recordings anonymous'
          }
          checked={keepRecordings}
          onChange={() => setKeep(true)}
        >
          Recordings stay watchable but are no longer linked to{' '}
          {isOne ? 'this person' : 'these people'}.{' '}
          <strong className="font-medium text-warn">
            They may still show personal data that was visible on the page.
          </strong>
        </RadioCard>
      </fieldset>
      {phrase !== first.externalId && <WhoGoes persons={persons} />}
      <Note>
        {isOne ? 'The person is' : 'A person is'} created again if your application calls{' '}
        <code className="font-mono text-xs">identify()</code> again.
      </Note>
      <TextField
        label={
          <>
            Type{' '}
            <code className="rounded bg-sunken px-1 py-0.5 font-mono text-sm break-all whitespace-pre-wrap">
              {phrase}
            </code>{' '}
            to confirm
            {phrase === first.externalId && <CopyButton text={phrase} label="Copy external ID" />}
          </>
        }
        value={typed}
        onChange={(event) => setTyped(event.target.value)}
        autoComplete="off"
        autoCapitalize="none"
        spellCheck={false}
        className="font-mono"
      />
    </DialogForm>
  )
}

/** The externalId, where it is one that a field can take; else words that can be typed. */
function phraseOf(persons: Deletable[], { externalId }: Deletable): string {
  if (persons.length > 1) return `delete ${persons.length} people`
  return shownId(externalId) === externalId ? externalId : 'delete this person'
}

function usePreview(persons: Deletable[]) {
  const projectId = useProjectId()
  const personIds = persons.map(({ id }) => id)
  return useQuery({
    queryKey: ['deletion-preview', projectId, personIds],
    queryFn: async ({ signal }) => {
      const parts = await Promise.all(
        partsOf(personIds).map((part) =>
          send(previewDeletion, { params: { projectId }, body: { personIds: part } }, signal),
        ),
      )
      return parts.reduce(sum)
    },
    staleTime: 0,
  })
}

function partsOf(ids: string[]): string[][] {
  const parts = []
  for (let at = 0; at < ids.length; at += personsMaximum) {
    parts.push(ids.slice(at, at + personsMaximum))
  }
  return parts
}

function sum(one: Preview, other: Preview): Preview {
  return {
    persons: one.persons + other.persons,
    browsers: one.browsers + other.browsers,
    sessions: one.sessions + other.sessions,
    sessionsBeforeIdentification:
      one.sessionsBeforeIdentification + other.sessionsBeforeIdentification,
    bytes: one.bytes + other.bytes,
  }
}

function useRequest(persons: Deletable[], keepRecordings: boolean, onDone: () => void) {
  const projectId = useProjectId()
  const queryClient = useQueryClient()
  const send = useSending()
  return useMutation({
    mutationFn: async () => {
      const refused: string[] = []
      for (const personIds of partsOf(persons.map(({ id }) => id))) {
        const { results } = await send(requestDeletions, {
          params: { projectId },
          body: { personIds, keepRecordings },
        })
        refused.push(...results.flatMap((result) => ('error' in result ? [result.error.code] : [])))
      }
      return refused
    },
    onSettled: () => queryClient.invalidateQueries(),
    onSuccess: (refused) => {
      const made = persons.length - refused.length
      if (made > 0) {
        say(
          made === 1 ? 'Deletion started' : `${made} deletions started`,
          'Track progress under Deletions.',
        )
      }
      if (refused.length > 0) {
        const why = refused.includes('deletion_in_progress')
          ? 'A deletion with the other choice for recordings is already in progress.'
          : 'They no longer exist.'
        say(`${counted(refused.length, 'person', 'people')} not deleted`, why)
      }
      onDone()
    },
  })
}

/** The people selected, for a last check. */
function WhoGoes({ persons }: { persons: Deletable[] }) {
  return (
    <section
      aria-label="Selected people"
      // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so the keyboard has to reach it
      tabIndex={0}
      className="max-h-32 overflow-y-auto rounded-lg border border-line"
    >
      <ul className="divide-y divide-line text-sm">
        {persons.map((person) => (
          <li key={person.id} className="flex items-baseline gap-3 px-3 py-1.5">
            <span className="min-w-0 flex-1 truncate font-medium">
              <bdi>{nameOf(person)}</bdi>
            </span>
            <ExternalId
              id={person.externalId}
              className="max-w-[50%] truncate text-xs! whitespace-pre text-muted"
            />
          </li>
        ))}
      </ul>
    </section>
  )
}

function WhatGoes({ preview, isOne }: { preview: Preview | undefined; isOne: boolean }) {
  if (!preview) return <span className="skeleton inline-block h-4 w-56 align-middle" />
  const { sessions, browsers, sessionsBeforeIdentification: before, bytes } = preview
  const records = isOne ? 'the record and its properties' : 'their records and properties'
  if (sessions === 0) {
    return `${isOne ? 'The record and its properties' : 'Their records and properties'} will be permanently deleted. There are no recordings of ${isOne ? 'this person' : 'these people'}.`
  }
  return (
    <>
      <strong className="font-medium text-ink tabular">
        {counted(sessions, 'recording')} from {counted(browsers, 'browser')}
      </strong>
      {before > 0 && `, ${beforeText(before, sessions)} before sign-in,`} will be permanently
      deleted with {records} ({bytesText(bytes)}).
    </>
  )
}

function beforeText(before: number, sessions: number): string {
  if (sessions === 1) return 'started'
  return before === sessions ? 'all started' : `${before} started`
}

function buttonText(persons: number, preview: Preview | undefined, keep: boolean): string {
  const who = persons === 1 ? 'person' : `${persons} people`
  if (preview?.sessions === 0) return `Delete ${who}`
  // Also before they are counted, or where they could not be, the button says what it does.
  const recordings = preview ? counted(preview.sessions, 'recording') : 'recordings'
  return keep ? `Delete ${who}, keep ${recordings}` : `Delete ${who} and ${recordings}`
}

function Note({ children }: { children: ReactNode }) {
  return (
    <p className="flex gap-2 text-sm text-pretty text-muted">
      <Icon name="info" className="mt-0.5 size-4" />
      <span>{children}</span>
    </p>
  )
}
