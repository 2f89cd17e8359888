import { createKey } from '@lethe/contract/dashboard-projects.ts'
import { useState } from 'react'
import { useAction } from '../api/action.ts'
import { basePath } from '../api/base-path.ts'
import { needsPermission, useMay } from '../api/me.ts'
import { useProjectId } from '../api/projects.ts'
import { Button } from '../design/button.tsx'
import { CodeBlock, SecretOnce } from '../design/copy.tsx'
import { ErrorLine } from '../design/states.tsx'
import { Time } from '../design/time.tsx'
import type { InstallState } from './browser.tsx'
import { freshKey } from './fresh-key.ts'
import { Step } from './step.tsx'

/** What the customer's backend does: create persons with their properties, and delete them. */
export function Backend({ host, state }: { host: string; state: InstallState }) {
  const projectId = useProjectId()
  const [key, setKey] = useState(() => freshKey(projectId))
  const [language, setLanguage] = useState<'curl' | 'node'>('curl')
  const text = key ?? 'sk_…'
  return (
    <>
      <Step number={1} title="Keep the secret key in your backend">
        {key ? (
          <SecretOnce text={key} label="Copy secret key" />
        ) : (
          <MakeKey state={state} onMade={setKey} />
        )}
      </Step>
      <Step number={2} title="Create a person, or set properties">
        <fieldset className="flex gap-1">
          <legend className="sr-only">Language of the examples</legend>
          <Choice
            label="curl"
            isChosen={language === 'curl'}
            onChoose={() => setLanguage('curl')}
          />
          <Choice
            label="Node"
            isChosen={language === 'node'}
            onChoose={() => setLanguage('node')}
          />
        </fieldset>
        <CodeBlock
          label={language === 'curl' ? 'Terminal' : 'JavaScript'}
          code={language === 'curl' ? createByCurl(host, text) : createByNode(host)}
        />
      </Step>
      <Step number={3} title="Delete a person">
        <CodeBlock
          label={language === 'curl' ? 'Terminal' : 'JavaScript'}
          code={language === 'curl' ? deleteByCurl(host, text) : deleteByNode(host)}
        />
        <p className="text-sm text-pretty text-muted">
          The response contains a job ID; deletion runs in the background. Full API reference:{' '}
          <a className="link" href={`${basePath}/docs`} target="_blank" rel="noreferrer">
            {host.replace(/^https?:\/\//, '')}/docs
          </a>
          .
        </p>
      </Step>
    </>
  )
}

function MakeKey({ state, onMade }: { state: InstallState; onMade: (key: string) => void }) {
  const projectId = useProjectId()
  const mayWrite = useMay('keys.write')
  const making = useAction(createKey, ({ text }) => onMade(text))
  const body = { kind: 'secret', name: 'Backend' } as const
  return (
    <>
      <p className="text-pretty text-muted">
        Secret keys are shown once and can’t be retrieved later.{' '}
        {state.secretKeyLastUsedAt && (
          <>
            A secret key is already in use, last <Time at={state.secretKeyLastUsedAt} as="ago" />.
          </>
        )}
      </p>
      <ErrorLine error={making.error} />
      <Button
        className="justify-self-start"
        icon="key"
        isBusy={making.isPending}
        disabledReason={mayWrite ? undefined : needsPermission['keys.write']}
        onClick={() => making.mutate({ params: { projectId }, body })}
      >
        Create a secret key
      </Button>
    </>
  )
}

function Choice({
  label,
  isChosen,
  onChoose,
}: {
  label: string
  isChosen: boolean
  onChoose: () => void
}) {
  return (
    <button
      type="button"
      aria-pressed={isChosen}
      onClick={onChoose}
      className={`h-7 rounded-md px-2.5 text-sm font-medium ${isChosen ? 'bg-accent-soft text-accent' : 'text-muted hover:bg-sunken hover:text-ink'}`}
    >
      {label}
    </button>
  )
}

function createByCurl(host: string, key: string): string {
  return `curl ${host}/v1/persons \\
  -H 'Authorization: Bearer ${key}' \\
  -H 'Content-Type: application/json' \\
  -d '{
    "externalId": "ada",
    "properties": { "name": "Ada Lovelace", "email": "ada@example.com", "plan": "pro" }
  }'`
}

function createByNode(host: string): string {
  return `await fetch('${host}/v1/persons', {
  method: 'POST',
  headers: {
    authorization: \`Bearer \${process.env.LETHE_SECRET_KEY}\`,
    'content-type': 'application/json',
  },
  body: JSON.stringify({
    externalId: user.id,
    properties: { name: user.name, email: user.email, plan: user.plan },
  }),
})`
}

function deleteByCurl(host: string, key: string): string {
  return `curl -X DELETE ${host}/v1/persons/ada \\
  -H 'Authorization: Bearer ${key}'`
}

function deleteByNode(host: string): string {
  return `const answer = await fetch(\`${host}/v1/persons/\${encodeURIComponent(user.id)}\`, {
  method: 'DELETE',
  headers: { authorization: \`Bearer \${process.env.LETHE_SECRET_KEY}\` },
})
const { job } = await answer.json()`
}
