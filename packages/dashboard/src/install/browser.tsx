import type { getInstallState } from '@lethe/contract/dashboard-projects.ts'
import type { ErrorBody } from '@lethe/contract/errors.ts'
import { queryOptions, useQuery } from '@tanstack/react-query'
import { snippetOf } from '../../../sdk-browser/build/snippet.ts'
import { basePath } from '../api/base-path.ts'
import { type Body, RequestFailed } from '../api/call.ts'
import { useProjectId } from '../api/projects.ts'
import { LinkButton } from '../design/button.tsx'
import { CodeBlock } from '../design/copy.tsx'
import { Awaited } from '../design/states.tsx'
import { Step } from './step.tsx'

export type InstallState = Body<typeof getInstallState>

interface Place {
  host: string
  state: InstallState
}

export function Snippet({ host, state }: Place) {
  const { data: sdk, error, refetch } = useQuery(sdkQuery)
  if (!state.publicKey) return <NoPublicKey />
  if (!sdk) {
    const title = 'The recorder script could not be loaded'
    return <Awaited error={error} title={title} retry={refetch} rows={3} />
  }
  const code = snippetOf(sdk.version, sdk.integrity)
    .replaceAll('{{host}}', host)
    .replaceAll('{{key}}', state.publicKey.text)
  return (
    <>
      <Step number={1} title="Paste this into the head of every page">
        <CodeBlock label="HTML" code={code.trim()} />
      </Step>
      <Step number={2} title="Identify users after they sign in">
        <CodeBlock label="JavaScript" code={identifyCode(state)} />
        <IdentifyNote state={state} />
      </Step>
    </>
  )
}

/** The version of the script that this server gives out, and its hash. */
const sdkQuery = queryOptions({
  queryKey: ['sdk'],
  queryFn: async ({ signal }) => {
    const response = await fetch(`${basePath}/sdk/manifest.json`, { signal })
    if (!response.ok) {
      throw new RequestFailed(response.status, (await response.json()) as ErrorBody)
    }
    const manifest = (await response.json()) as {
      version: string
      files: Record<string, { integrity: string }>
    }
    return { version: manifest.version, integrity: manifest.files['lethe.js']?.integrity ?? '' }
  },
  staleTime: 600_000,
})

export function Npm({ host, state }: Place) {
  if (!state.publicKey) return <NoPublicKey />
  return (
    <>
      <Step number={1} title="Add the package">
        <CodeBlock label="Terminal" code="npm install @lethe/sdk-browser" />
      </Step>
      <Step number={2} title="Start it when your application starts">
        <CodeBlock
          label="JavaScript"
          code={`import { lethe } from '@lethe/sdk-browser'

lethe.init('${state.publicKey.text}', { host: '${host}' })`}
        />
      </Step>
      <Step number={3} title="Identify users after they sign in">
        <CodeBlock label="JavaScript" code={identifyCode(state)} />
        <IdentifyNote state={state} />
      </Step>
    </>
  )
}

function identifyCode({ needsProof }: InstallState): string {
  return needsProof
    ? `lethe.identify('the id of the user in your system', { hash: 'created by your backend' })`
    : `lethe.identify('the id of the user in your system')`
}

function IdentifyNote({ state }: { state: InstallState }) {
  return (
    <p className="text-sm text-pretty text-muted">
      {state.needsProof
        ? 'This project requires a proof with each identify(): a JWT with the user ID as its subject and an expiry, signed by your backend with its private key or the identify secret. '
        : ''}
      Call <code className="font-mono">lethe.reset()</code> when a user signs out, so that the next
      user of the same browser is not recorded as the same person.
    </p>
  )
}

function NoPublicKey() {
  const projectId = useProjectId()
  return (
    <div className="grid justify-items-start gap-3">
      <p>This project has no active public key. Pages need one to record.</p>
      <LinkButton to="/projects/$projectId/settings/keys" params={{ projectId }} look="primary">
        Create a public key
      </LinkButton>
    </div>
  )
}
