import type { PersonDetail } from '@lethe/contract/dashboard-persons.ts'
import { useState } from 'react'
import { Dialog } from '../design/dialog.tsx'
import { DialogForm } from '../design/dialog-form.tsx'
import { Field, Select, SelectField, TextField } from '../design/field.tsx'
import { say } from '../design/toast.tsx'
import { type Kind, keyError, kindNames, kindOf, kinds, parse, textOf } from './property-value.ts'
import { useUpdate } from './query.ts'

/** Sets one property: `editing.key` null is a new one. */
export function PropertyDialog({
  person,
  editing,
  onClose,
}: {
  person: PersonDetail
  editing: { key: string | null } | null
  onClose: () => void
}) {
  return (
    <Dialog
      isOpen={editing !== null}
      onClose={onClose}
      title={editing?.key === null ? 'Add property' : 'Edit property'}
    >
      {editing && <PropertyForm person={person} name={editing.key} onClose={onClose} />}
    </Dialog>
  )
}

function PropertyForm({
  person,
  name,
  onClose,
}: {
  person: PersonDetail
  name: string | null
  onClose: () => void
}) {
  const before = name === null ? '' : person.properties[name]
  const [key, setKey] = useState(name ?? '')
  const [kind, setKind] = useState<Kind>(kindOf(before))
  const [text, setText] = useState(textOf(before))
  const [isChecked, setChecked] = useState(false)
  const saving = useUpdate(() => {
    say(name === null ? 'Property added' : 'Property saved')
    onClose()
  })
  const wrongKey = name === null ? keyError(key, Object.keys(person.properties)) : undefined
  const parsed = parse(kind, text)
  return (
    <DialogForm
      action="Save"
      doing={saving}
      onSubmit={() => {
        setChecked(true)
        if (wrongKey === undefined && 'value' in parsed) saving.mutate({ [key]: parsed.value })
      }}
      onClose={onClose}
    >
      <TextField
        label="Key"
        value={key}
        readOnly={name !== null}
        onChange={(event) => setKey(event.target.value)}
        error={isChecked && wrongKey}
        autoComplete="off"
        autoCapitalize="none"
        spellCheck={false}
        className="font-mono"
      />
      <SelectField
        label="Type"
        value={kind}
        onChange={(event) => setKind(event.target.value as Kind)}
      >
        {kinds.map((one) => (
          <option key={one} value={one}>
            {kindNames[one]}
          </option>
        ))}
      </SelectField>
      <ValueField
        kind={kind}
        text={text}
        onChange={setText}
        error={isChecked && 'error' in parsed ? parsed.error : undefined}
      />
    </DialogForm>
  )
}

function ValueField({
  kind,
  text,
  onChange,
  error,
}: {
  kind: Kind
  text: string
  onChange: (text: string) => void
  error: string | undefined
}) {
  return (
    <Field label="Value" error={error}>
      {(parts) =>
        kind === 'boolean' ? (
          <Select
            {...parts}
            value={text === 'true' ? 'true' : 'false'}
            onChange={(event) => onChange(event.target.value)}
          >
            <option value="true">True</option>
            <option value="false">False</option>
          </Select>
        ) : kind === 'number' ? (
          <input
            {...parts}
            inputMode="decimal"
            value={text}
            onChange={(event) => onChange(event.target.value)}
            className="field font-mono"
            autoComplete="off"
          />
        ) : (
          <textarea
            {...parts}
            rows={kind === 'json' ? 8 : 3}
            value={text}
            onChange={(event) => onChange(event.target.value)}
            spellCheck={false}
            className={`field h-auto py-2 ${kind === 'json' ? 'font-mono text-sm' : ''}`}
          />
        )
      }
    </Field>
  )
}
