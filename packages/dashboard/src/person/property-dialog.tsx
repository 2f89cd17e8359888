import type { PersonDetail } from '@lethe/contract/dashboard-persons.ts'
import { useState } from 'react'
import { Button } from '../design/button.tsx'
import { Dialog, DialogActions } from '../design/dialog.tsx'
import { Field, Select, SelectField, TextField } from '../design/field.tsx'
import { ErrorLine } from '../design/states.tsx'
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
      title={editing?.key === null ? 'Add a property' : 'Edit the property'}
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
    say(name === null ? 'The property was added' : 'The property was saved')
    onClose()
  })
  const wrongKey = name === null ? keyError(key, Object.keys(person.properties)) : undefined
  const parsed = parse(kind, text)
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        setChecked(true)
        if (wrongKey === undefined && 'value' in parsed) saving.mutate({ [key]: parsed.value })
      }}
      className="grid gap-4"
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
        label="Kind"
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
      <ErrorLine error={saving.error} />
      <DialogActions>
        <Button onClick={onClose}>Cancel</Button>
        <Button type="submit" look="primary" isBusy={saving.isPending}>
          Save
        </Button>
      </DialogActions>
    </form>
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
            <option value="true">Yes (true)</option>
            <option value="false">No (false)</option>
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
