import {
  makeSessionLink,
  type SessionLink,
  withdrawSessionLink,
} from '@lethe/contract/dashboard-moments.ts'
import { useState } from 'react'
import { useAction } from '../api/action.ts'
import { useProjectId } from '../api/projects.ts'
import { Button } from '../design/button.tsx'
import { SecretOnce } from '../design/copy.tsx'
import { Dialog } from '../design/dialog.tsx'
import { DialogDone, DialogForm } from '../design/dialog-form.tsx'
import { SelectField } from '../design/field.tsx'
import { ErrorLine } from '../design/states.tsx'
import { durationText, Time } from '../design/time.tsx'
import type { Player } from '../replay/player.ts'

interface OfSession {
  player: Player
  sessionId: string
  links: SessionLink[]
}

/** Links to this moment for people without an account. */
export function ShareButton(props: OfSession) {
  const [isOpen, setOpen] = useState(false)
  const onClose = () => setOpen(false)
  return (
    <>
      <Button
        size="small"
        look="quiet"
        icon="external"
        onClick={() => {
          props.player.pause()
          setOpen(true)
        }}
      >
        Share
      </Button>
      <Dialog
        isOpen={isOpen}
        onClose={onClose}
        title="Share this recording"
        description="Anyone with the link can watch this recording until it expires, without an account. They don’t see the person or your notes, but they see everything the recording shows."
      >
        <ShareForm {...props} onClose={onClose} />
        {props.links.length > 0 && <Links {...props} />}
      </Dialog>
    </>
  )
}

function ShareForm({ player, sessionId, onClose }: OfSession & { onClose: () => void }) {
  const [days, setDays] = useState('7')
  const params = { projectId: useProjectId(), sessionId }
  const making = useAction(makeSessionLink)
  const at = Math.round(player.state().at)
  if (making.data) {
    return (
      <DialogDone onClose={onClose}>
        <SecretOnce text={making.data.link} label="Copy the link" />
        <p className="text-sm text-muted">
          It expires <Time at={making.data.expiresAt} />, or when the recording is deleted.
        </p>
      </DialogDone>
    )
  }
  return (
    <DialogForm
      action="Create link"
      doing={making}
      onSubmit={() => making.mutate({ params, body: { at, days: Number(days) } })}
      onClose={onClose}
    >
      <SelectField
        label="Expires after"
        hint={`It starts at ${durationText(at / 1_000)}.`}
        value={days}
        onChange={(event) => setDays(event.target.value)}
      >
        <option value="1">1 day</option>
        <option value="7">7 days</option>
        <option value="30">30 days</option>
      </SelectField>
    </DialogForm>
  )
}

function Links({ sessionId, links }: OfSession) {
  const params = { projectId: useProjectId(), sessionId }
  const withdrawing = useAction(withdrawSessionLink)
  return (
    <section className="mt-5 border-t border-line pt-4">
      <h3 className="text-sm font-medium">Active links</h3>
      <ul className="mt-2 grid gap-2">
        {links.map(({ id, at, member, expiresAt }) => (
          <li key={id} className="flex items-center justify-between gap-3 text-sm">
            <span>
              At {durationText(at / 1_000)}, by {member.name ?? 'a former member'}, expires{' '}
              <Time at={expiresAt} />
            </span>
            <Button
              size="small"
              onClick={() => withdrawing.mutate({ params: { ...params, linkId: id } })}
            >
              Revoke
            </Button>
          </li>
        ))}
      </ul>
      <ErrorLine error={withdrawing.error} />
    </section>
  )
}
