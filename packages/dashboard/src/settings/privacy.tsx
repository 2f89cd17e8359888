import {
  type DashboardProject,
  getProject,
  makeIdentifySecret,
  removeIdentifySecret,
  updateProject,
} from '@lethe/contract/dashboard-projects.ts'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { useAction } from '../api/action.ts'
import { needsPermission, useMay } from '../api/me.ts'
import { useProjectId } from '../api/projects.ts'
import { reading } from '../api/queries.ts'
import { Button } from '../design/button.tsx'
import { Chip } from '../design/chip.tsx'
import { SecretOnce } from '../design/copy.tsx'
import { Dialog, DialogActions } from '../design/dialog.tsx'
import { RadioCard, TextField } from '../design/field.tsx'
import { Panel, useTitle } from '../design/page.tsx'
import { ErrorLine, ErrorPanel, Skeletons } from '../design/states.tsx'
import { say } from '../design/toast.tsx'

export function Privacy() {
  useTitle('Privacy')
  const projectId = useProjectId()
  const { data, error, refetch } = useQuery(reading(getProject, { params: { projectId } }))
  if (error && !data) {
    return (
      <div className="card">
        <ErrorPanel
          error={error}
          title="The settings could not be loaded"
          retry={() => refetch()}
        />
      </div>
    )
  }
  if (!data) return <Skeletons rows={5} />
  return (
    <>
      <RecordingSettings key={data.project.id} project={data.project} />
      <IdentifySecret project={data.project} />
    </>
  )
}

const maskings = [
  {
    value: 'strict',
    title: 'Strict',
    text: 'Nothing readable: all text and all media are hidden. Layout, clicks and scrolling stay.',
  },
  {
    value: 'balanced',
    title: 'Balanced',
    text: 'What is typed, labels of forms, e-mail addresses and card numbers are hidden; other text is shown.',
  },
  {
    value: 'open',
    title: 'Open',
    text: 'Only what is typed is hidden. For pages that show nobody’s data.',
  },
] as const

function RecordingSettings({ project }: { project: DashboardProject }) {
  const mayWrite = useMay('projects.write')
  const [name, setName] = useState(project.name)
  const [masking, setMasking] = useState(project.masking)
  const [percent, setPercent] = useState(String(Number((project.sampleRate * 100).toFixed(2))))
  const [days, setDays] = useState(String(project.retentionDays))
  const [isAsking, setIsAsking] = useState(false)
  const saving = useAction(updateProject, () => {
    setIsAsking(false)
    say('The settings were saved')
  })
  const save = () =>
    saving.mutate({
      params: { projectId: project.id },
      body: { name, masking, sampleRate: Number(percent) / 100, retentionDays: Number(days) },
    })
  return (
    <Panel
      title="Project and recording"
      description="The project’s masking can only hide more than a page asks for, never less."
    >
      <form
        onSubmit={(event) => {
          event.preventDefault()
          // What is deleted by that comes back by nothing.
          if (Number(days) < project.retentionDays) setIsAsking(true)
          else save()
        }}
        className="grid gap-5 border-t border-line px-4 py-5 *:max-w-xl"
      >
        <TextField
          label="Name of the project"
          value={name}
          onChange={(event) => setName(event.target.value)}
          required
          maxLength={200}
          readOnly={!mayWrite}
          autoComplete="off"
        />
        <MaskingField masking={masking} setMasking={setMasking} isOff={!mayWrite} />
        <TextField
          label="Recorded sessions, in percent"
          hint="Which ones is left to chance; 100 records all of them."
          type="number"
          min={0}
          max={100}
          step="any"
          required
          value={percent}
          onChange={(event) => setPercent(event.target.value)}
          readOnly={!mayWrite}
          className="max-w-32 tabular"
        />
        <TextField
          label="Recordings are kept for, in days"
          hint="Older ones are deleted by themselves. Persons and their properties stay."
          type="number"
          min={1}
          max={3650}
          step={1}
          required
          value={days}
          onChange={(event) => setDays(event.target.value)}
          readOnly={!mayWrite}
          className="max-w-32 tabular"
        />
        <ErrorLine error={saving.error} />
        <Button
          type="submit"
          look="primary"
          className="justify-self-start"
          isBusy={saving.isPending}
          disabledReason={mayWrite ? undefined : needsPermission['projects.write']}
        >
          Save
        </Button>
      </form>
      <Dialog isOpen={isAsking} onClose={() => setIsAsking(false)} title="Delete older recordings?">
        <p className="text-pretty">
          Recordings older than {days} {days === '1' ? 'day' : 'days'} are deleted within the hour,
          and cannot be brought back. Until now they were kept for {project.retentionDays}.
        </p>
        <ErrorLine error={saving.error} />
        <DialogActions>
          <Button onClick={() => setIsAsking(false)}>Cancel</Button>
          <Button look="danger" isBusy={saving.isPending} onClick={save}>
            Save and delete
          </Button>
        </DialogActions>
      </Dialog>
    </Panel>
  )
}

type Masking = DashboardProject['masking']

function MaskingField({
  masking,
  setMasking,
  isOff,
}: {
  masking: Masking
  setMasking: (masking: Masking) => void
  isOff: boolean
}) {
  return (
    <fieldset className="grid gap-2" disabled={isOff}>
      <legend className="mb-1.5 text-sm font-medium">Masking</legend>
      {maskings.map((one) => (
        <RadioCard
          key={one.value}
          name="masking"
          title={one.title}
          checked={masking === one.value}
          onChange={() => setMasking(one.value)}
        >
          {one.text}
        </RadioCard>
      ))}
    </fieldset>
  )
}

function IdentifySecret({ project }: { project: DashboardProject }) {
  const mayWrite = useMay('projects.write')
  const [asking, setAsking] = useState<'make' | 'remove' | null>(null)
  const reason = mayWrite ? undefined : needsPermission['projects.write']
  return (
    <Panel
      title="Identify secret"
      description="With a secret, identify() needs a hash that only your backend can make, so nobody can pass for somebody else from a browser’s console."
      actions={
        project.hasIdentifySecret ? <Chip tone="ok">Asked for</Chip> : <Chip>Not asked for</Chip>
      }
    >
      <div className="flex flex-wrap gap-2 border-t border-line px-4 py-4">
        <Button icon="key" disabledReason={reason} onClick={() => setAsking('make')}>
          {project.hasIdentifySecret ? 'Make a new secret…' : 'Make a secret…'}
        </Button>
        {project.hasIdentifySecret && (
          <Button look="dangerQuiet" disabledReason={reason} onClick={() => setAsking('remove')}>
            Remove it…
          </Button>
        )}
      </div>
      <MakeSecret project={project} isOpen={asking === 'make'} onClose={() => setAsking(null)} />
      <RemoveSecret
        project={project}
        isOpen={asking === 'remove'}
        onClose={() => setAsking(null)}
      />
    </Panel>
  )
}

interface SecretDialog {
  project: DashboardProject
  isOpen: boolean
  onClose: () => void
}

function MakeSecret({ project, isOpen, onClose }: SecretDialog) {
  return (
    <Dialog isOpen={isOpen} onClose={onClose} title="Make an identify secret">
      <MakeSecretForm project={project} onClose={onClose} />
    </Dialog>
  )
}

function MakeSecretForm({ project, onClose }: Omit<SecretDialog, 'isOpen'>) {
  const making = useAction(makeIdentifySecret)
  if (making.data) {
    return (
      <div className="grid gap-3">
        <SecretOnce text={making.data.identifySecret} label="Copy the secret" />
        <DialogActions>
          <Button look="primary" onClick={onClose}>
            I have it
          </Button>
        </DialogActions>
      </div>
    )
  }
  return (
    <div className="grid gap-3">
      <p className="text-pretty">
        From then on every identify() without a right hash is ignored.{' '}
        {project.hasIdentifySecret
          ? 'Hashes made with the present secret no longer count.'
          : 'Have your backend ready for it: until it sends hashes, visitors stay anonymous.'}
      </p>
      <ErrorLine error={making.error} />
      <DialogActions>
        <Button onClick={onClose}>Cancel</Button>
        <Button
          look="primary"
          isBusy={making.isPending}
          onClick={() => making.mutate({ params: { projectId: project.id }, body: {} })}
        >
          Make the secret
        </Button>
      </DialogActions>
    </div>
  )
}

function RemoveSecret({ project, isOpen, onClose }: SecretDialog) {
  const removing = useAction(removeIdentifySecret, () => {
    say('The identify secret was removed')
    onClose()
  })
  return (
    <Dialog
      isOpen={isOpen}
      onClose={onClose}
      title="Remove the identify secret?"
      description="identify() is then taken from any page that has the public key, without a hash."
    >
      <ErrorLine error={removing.error} />
      <DialogActions>
        <Button onClick={onClose}>Cancel</Button>
        <Button
          look="danger"
          isBusy={removing.isPending}
          onClick={() => removing.mutate({ params: { projectId: project.id } })}
        >
          Remove the secret
        </Button>
      </DialogActions>
    </Dialog>
  )
}
