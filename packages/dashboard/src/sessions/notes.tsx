import {
  addNote,
  listMoments,
  removeNote,
  type SessionNote,
} from '@lethe/contract/dashboard-moments.ts'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { useAction } from '../api/action.ts'
import { useMay, useMe } from '../api/me.ts'
import { useProjectId } from '../api/projects.ts'
import { liveMilliseconds, reading } from '../api/queries.ts'
import { Button, IconButton } from '../design/button.tsx'
import { ErrorLine } from '../design/states.tsx'
import { durationText } from '../design/time.tsx'
import type { Player } from '../replay/player.ts'
import { usePart } from '../replay/use-player.ts'

const none = { notes: [], links: [] }

/** What members wrote at moments of a session, and the links to them. */
export function useMoments(sessionId: string) {
  const params = { projectId: useProjectId(), sessionId }
  const { data } = useQuery({
    ...reading(listMoments, { params }),
    refetchInterval: 4 * liveMilliseconds,
  })
  return data ?? none
}

/** Each note leads to its moment; a new one is written at the moment that is seen. */
export function Notes({
  player,
  sessionId,
  notes,
}: {
  player: Player
  sessionId: string
  notes: SessionNote[]
}) {
  const mayWrite = useMay('sessions.annotate')
  const mayRemoveAll = useMay('members.write')
  const me = useMe().member
  const params = { projectId: useProjectId(), sessionId }
  const removing = useAction(removeNote)
  if (notes.length === 0 && !mayWrite) return null
  return (
    <details open={notes.length > 0} className="border-b border-line px-4 py-2.5">
      <summary className="rounded-sm font-medium">
        Notes{notes.length > 0 && ` (${notes.length})`}
      </summary>
      <ul className="mt-1.5 grid max-h-40 gap-1.5 overflow-y-auto">
        {notes.map(({ id, at, text, member }) => (
          <li key={id} className="flex items-start gap-2 text-sm">
            <button type="button" onClick={() => player.seek(at)} className="link shrink-0 tabular">
              {durationText(at / 1_000)}
            </button>
            <p className="min-w-0 flex-1 wrap-anywhere whitespace-pre-wrap">
              {text} <span className="text-muted">{member.name ?? 'Former member'}</span>
            </p>
            {(mayRemoveAll || (mayWrite && member.id === me?.id)) && (
              <IconButton
                label="Delete note"
                icon="close"
                onClick={() => removing.mutate({ params: { ...params, noteId: id } })}
              />
            )}
          </li>
        ))}
      </ul>
      <ErrorLine error={removing.error} />
      {mayWrite && <NewNote player={player} params={params} />}
    </details>
  )
}

function NewNote({
  player,
  params,
}: {
  player: Player
  params: { projectId: string; sessionId: string }
}) {
  const [text, setText] = useState('')
  const at = usePart(player, (state) => Math.floor(state.at / 1_000))
  const adding = useAction(addNote, () => setText(''))
  return (
    <form
      className="mt-2 flex flex-wrap gap-2"
      onSubmit={(event) => {
        event.preventDefault()
        adding.mutate({ params, body: { at: Math.round(player.state().at), text } })
      }}
    >
      <input
        aria-label="New note"
        placeholder={`Note at ${durationText(at)}`}
        className="field h-8! min-w-0 flex-1 text-sm"
        required
        maxLength={2_000}
        value={text}
        onFocus={() => player.pause()}
        onChange={(event) => setText(event.target.value)}
      />
      <Button type="submit" size="small" isBusy={adding.isPending}>
        Add
      </Button>
      <ErrorLine error={adding.error} />
    </form>
  )
}
