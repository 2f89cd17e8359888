import {
  changePassword,
  endOtherSignIns,
  listSignIns,
  updateMe,
} from '@lethe/contract/dashboard-members.ts'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { useAction } from '../api/action.ts'
import { useMe } from '../api/me.ts'
import { reading } from '../api/queries.ts'
import { Button } from '../design/button.tsx'
import { Tag } from '../design/chip.tsx'
import { CheckboxField } from '../design/field.tsx'
import { PanelForm } from '../design/form.tsx'
import { PageHead, Panel } from '../design/page.tsx'
import { Awaited } from '../design/states.tsx'
import { Time } from '../design/time.tsx'
import { say } from '../design/toast.tsx'
import { browserText } from '../sessions/user-agent.ts'
import { areShortcutsOn, switchShortcuts } from '../shell/theme.ts'
import {
  CodeField,
  CurrentPassword,
  HiddenEmail,
  NameField,
  PasswordField,
} from '../sign-in/fields.tsx'
import { Passkeys } from './passkeys.tsx'
import { SecondFactor } from './second-factor.tsx'

export function Account() {
  const { member } = useMe()
  return (
    <div className="mx-auto w-full max-w-[48rem] px-4 py-6 sm:px-8">
      <PageHead title="Your account" />
      <Name />
      <Password />
      <SecondFactor />
      {member?.hasSecondFactor && <Passkeys />}
      <SignIns />
      <Keyboard />
    </div>
  )
}

function Name() {
  const { member } = useMe()
  const [name, setName] = useState(member?.name ?? '')
  const saving = useAction(updateMe, () => say('Your name was saved'))
  return (
    <Panel title="Name" description={member?.email}>
      <PanelForm
        action="Save"
        look="secondary"
        doing={saving}
        onSubmit={() => saving.mutate({ body: { name } })}
      >
        <NameField label="Name" value={name} onChange={setName} />
      </PanelForm>
    </Panel>
  )
}

function Password() {
  const { member } = useMe()
  const [currentPassword, setCurrent] = useState('')
  const [newPassword, setNew] = useState('')
  const [code, setCode] = useState('')
  const changing = useAction(changePassword, () => {
    say('Your password was changed', 'You are signed out everywhere else.')
    setCurrent('')
    setCode('')
    setNew('')
  })
  return (
    <Panel title="Password" description="Changing it signs you out everywhere else.">
      <PanelForm
        action="Change password"
        look="secondary"
        doing={changing}
        onSubmit={() =>
          changing.mutate({
            body: { currentPassword, newPassword, ...(member?.hasSecondFactor && { code }) },
          })
        }
      >
        <HiddenEmail email={member?.email ?? ''} />
        <CurrentPassword label="Current password" value={currentPassword} onChange={setCurrent} />
        {member?.hasSecondFactor && <CodeField value={code} onChange={setCode} />}
        <PasswordField label="New password" value={newPassword} onChange={setNew} />
      </PanelForm>
    </Panel>
  )
}

function SignIns() {
  const { data, error, refetch } = useQuery(reading(listSignIns, {}))
  const ending = useAction(
    endOtherSignIns,
    () => say('You are signed out everywhere else'),
    'The other sessions are still signed in',
  )
  return (
    <Panel
      title="Where you are signed in"
      actions={
        data &&
        data.signIns.length > 1 && (
          <Button isBusy={ending.isPending} onClick={() => ending.mutate({ body: {} })}>
            Sign out everywhere else
          </Button>
        )
      }
    >
      <div className="border-t border-line">
        {data ? (
          <ul>
            {data.signIns.map((one) => (
              <li
                key={one.id}
                className="flex flex-wrap items-center justify-between gap-x-4 gap-y-0.5 border-b border-line px-4 py-2.5 last:border-b-0"
              >
                <span className="flex items-center gap-2 font-medium">
                  {browserText(one.userAgent)} {one.isCurrent && <Tag>this browser</Tag>}
                </span>
                <span className="text-sm text-muted tabular">
                  {one.address && `${one.address} · `}
                  <Time at={one.lastUsedAt} as="ago" />
                </span>
              </li>
            ))}
          </ul>
        ) : (
          <Awaited
            error={error}
            title="Your sessions could not be loaded"
            retry={refetch}
            rows={2}
          />
        )}
      </div>
    </Panel>
  )
}

function Keyboard() {
  const [isOn, setOn] = useState(areShortcutsOn)
  return (
    <Panel title="Keyboard">
      <div className="border-t border-line px-4 py-4">
        <CheckboxField
          label="Single-key shortcuts"
          hint="Slash moves to the search field; space, the arrow keys and letters control the player. Turn them off if they interfere with speech input. Applies to this browser."
          checked={isOn}
          onChange={(event) => {
            setOn(event.target.checked)
            switchShortcuts(event.target.checked)
          }}
        />
      </div>
    </Panel>
  )
}
