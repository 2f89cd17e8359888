import {
  type DashboardProject,
  getProject,
  updateProject,
} from '@lethe/contract/dashboard-projects.ts'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { useAction } from '../api/action.ts'
import { needsPermission, useMay } from '../api/me.ts'
import { useProjectId, useSummary } from '../api/projects.ts'
import { reading } from '../api/queries.ts'
import { ConfirmDialog } from '../design/dialog-form.tsx'
import { CheckboxField, RadioCard, TextField } from '../design/field.tsx'
import { PanelForm } from '../design/form.tsx'
import { counted } from '../design/number.ts'
import { Panel, useTitle } from '../design/page.tsx'
import { Awaited, ErrorLine } from '../design/states.tsx'
import { say } from '../design/toast.tsx'
import { IdentityProof } from './identity-proof.tsx'

export function Privacy() {
  useTitle('Privacy')
  const projectId = useProjectId()
  const { data, error, refetch } = useQuery(reading(getProject, { params: { projectId } }))
  if (!data) {
    return (
      <Awaited error={error} title="Settings could not be loaded" retry={refetch} rows={5} isCard />
    )
  }
  return (
    <>
      <RecordingSettings key={data.project.id} project={data.project} />
      <ErasureSettings project={data.project} />
      <IdentityProof project={data.project} />
    </>
  )
}

const maskings = [
  {
    value: 'strict',
    title: 'Strict',
    text: 'Nothing is readable: all text and media are hidden. Layout, clicks and scrolling are recorded.',
  },
  {
    value: 'balanced',
    title: 'Balanced',
    text: 'Input, form labels, email addresses and card numbers are hidden; other text is shown.',
  },
  {
    value: 'open',
    title: 'Open',
    text: 'Only input is hidden. For pages that show no personal data.',
  },
] as const

function RecordingSettings({ project }: { project: DashboardProject }) {
  const mayWrite = useMay('projects.write')
  const [name, setName] = useState(project.name)
  const [masking, setMasking] = useState(project.masking)
  const [recordsAssets, setRecordsAssets] = useState(project.recordsAssets)
  const [percent, setPercent] = useState(String(Number((project.sampleRate * 100).toFixed(2))))
  const [days, setDays] = useState(String(project.retentionDays))
  const [identifiedDays, setIdentifiedDays] = useState(String(project.identifiedDays))
  const [isAsking, setIsAsking] = useState(false)
  const saving = useAction(updateProject, () => {
    setIsAsking(false)
    say('Settings saved')
  })
  const save = () =>
    saving.mutate({
      params: { projectId: project.id },
      body: {
        ...{ name, masking, recordsAssets, retentionDays: Number(days) },
        identifiedDays: Number(identifiedDays),
        sampleRate: Number(percent) / 100,
      },
    })
  return (
    <Panel
      title="Project and recording"
      description="Project masking can hide more than the page requests, never less."
    >
      <PanelForm
        action="Save"
        doing={saving}
        disabledReason={mayWrite ? undefined : needsPermission['projects.write']}
        onSubmit={() => {
          // What is deleted by that comes back by nothing.
          if (Number(days) < project.retentionDays) setIsAsking(true)
          else save()
        }}
        className="*:max-w-xl"
      >
        <TextField
          label="Project name"
          value={name}
          onChange={(event) => setName(event.target.value)}
          required
          maxLength={200}
          readOnly={!mayWrite}
          autoComplete="off"
        />
        <MaskingField masking={masking} setMasking={setMasking} isOff={!mayWrite} />
        <CheckboxField
          label="Record images and fonts"
          hint="For pages that ask for it. Without them a replay shows gaps."
          checked={recordsAssets}
          disabled={!mayWrite}
          onChange={({ target }) => setRecordsAssets(target.checked)}
        />
        <NumberField
          label="Sample rate (%)"
          hint="Sessions are chosen at random; 100 records all of them."
          {...{ min: 0, max: 100, step: 'any', value: percent, setValue: setPercent, mayWrite }}
        />
        <NumberField
          label="Retention (days)"
          hint="Older recordings are deleted automatically. People and their properties are kept."
          {...{ min: 1, max: 3650, step: 1, value: days, setValue: setDays, mayWrite }}
        />
        <NumberField
          label="Retention of people created by identify() (days)"
          hint="Those without properties are deleted this many days after their last recording. 0 keeps them."
          {...{ min: 0, max: 3650, step: 1, mayWrite }}
          {...{ value: identifiedDays, setValue: setIdentifiedDays }}
        />
      </PanelForm>
      <ConfirmDialog
        isOpen={isAsking}
        title="Delete older recordings?"
        description={`Recordings older than ${days} ${days === '1' ? 'day' : 'days'} will be permanently deleted within the hour. The current retention is ${project.retentionDays} days.`}
        action="Save and delete"
        doing={saving}
        onSubmit={save}
        onClose={() => setIsAsking(false)}
      />
    </Panel>
  )
}

function NumberField({
  setValue,
  mayWrite,
  ...field
}: {
  label: string
  hint: string
  min: number
  max: number
  step: number | 'any'
  value: string
  setValue: (value: string) => void
  mayWrite: boolean
}) {
  return (
    <TextField
      {...field}
      type="number"
      required
      onChange={(event) => setValue(event.target.value)}
      readOnly={!mayWrite}
      className="max-w-32 tabular"
    />
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

/** Each takes effect when it is changed. */
function ErasureSettings({ project }: { project: DashboardProject }) {
  const mayWrite = useMay('projects.write')
  const saving = useAction(updateProject, () => say('Settings saved'))
  const params = { projectId: project.id }
  return (
    <Panel title="Erasure" description="What visitors can erase, and who can come back.">
      <div className="grid gap-4 border-t border-line px-4 py-4">
        <CheckboxField
          label="Visitors can erase what their browser recorded"
          hint="For pages that ask for it, such as on withdrawal of consent. People and their properties are kept."
          checked={project.allowsWithdrawal}
          disabled={!mayWrite || saving.isPending}
          onChange={({ target }) =>
            saving.mutate({ params, body: { allowsWithdrawal: target.checked } })
          }
        />
        <CheckboxField
          label="Deleted people stay deleted"
          hint="identify() does not create them again until your backend does. Turning this off forgets who was deleted."
          checked={project.suppressesErased}
          disabled={!mayWrite || saving.isPending}
          onChange={({ target }) =>
            saving.mutate({ params, body: { suppressesErased: target.checked } })
          }
        />
        {project.suppressesErased && <HeldBack />}
        <ErrorLine error={saving.error} />
      </div>
    </Panel>
  )
}

/** How far it is counted. */
const heldBackMaximum = 10_000

function HeldBack() {
  const number = useSummary().data?.suppressedPeople ?? 0
  if (number === 0) return null
  const people = counted(number, 'deleted person', 'deleted people')
  return (
    <p className="text-sm text-muted">
      {number < heldBackMaximum ? people : `At least ${people}`} held back. To let someone return,
      create them with <code>POST /v1/persons</code>, or call{' '}
      <code className="break-all">DELETE /v1/suppressions?externalId=user-1</code>.
    </p>
  )
}
