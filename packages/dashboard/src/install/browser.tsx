import type { getInstallState } from '@lethe/contract/dashboard-projects.ts'
import type { ErrorBody } from '@lethe/contract/errors.ts'
import { queryOptions, useQuery } from '@tanstack/react-query'
import { snippetOf } from '../../../sdk-browser/build/snippet.ts'
import { type Body, RequestFailed } from '../api/call.ts'
import { useProjectId } from '../api/projects.ts'
import { LinkButton } from '../design/button.tsx'
import { CodeBlock } from '../design/copy.tsx'
import { ErrorPanel, Skeletons } from '../design/states.tsx'
import { Step } from './step.tsx'

export type InstallState = Body<typeof getInstallState>

interface Place {
  host: string
  state: InstallState
}

export function Snippet({ host, state }: Place) {
  const { data: sdk, error, refetch } = useQuery(sdkQuery)
  if (!state.publicKey) return <NoPublicKey />
  if (error) {
    return (
      <ErrorPanel
        error={error}
        title="The recorder’s script is not there"
        retry={() => void refetch()}
      />
    )
  }
  if (!sdk) return <Skeletons rows={3} />
  const code = snippetOf(sdk.version, sdk.integrity)
    .replaceAll('{{host}}', host)
    .replaceAll('{{key}}', state.publicKey.text)
  return (
    <>
      <Step number={1} title="Paste this into the head of every page">
        <CodeBlock label="HTML" code={code.trim()} />
      </Step>
      <Step number={2} title="Say who it is, once somebody has signed in">
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
    const response = await fetch('/sdk/manifest.json', { signal })
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
      <Step number={2} title="Start it where your application starts">
        <CodeBlock
          label="JavaScript"
          code={`import { lethe } from '@lethe/sdk-browser'

lethe.init('${state.publicKey.text}', { host: '${host}' })`}
        />
      </Step>
      <Step number={3} title="Say who it is, once somebody has signed in">
        <CodeBlock label="JavaScript" code={identifyCode(state)} />
        <IdentifyNote state={state} />
      </Step>
    </>
  )
}

function identifyCode({ hasIdentifySecret }: InstallState): string {
  return hasIdentifySecret
    ? `lethe.identify('the id of the user in your system', { hash: 'made by your backend' })`
    : `lethe.identify('the id of the user in your system')`
}

function IdentifyNote({ state }: { state: InstallState }) {
  return (
    <p className="text-sm text-pretty text-muted">
      {state.hasIdentifySecret
        ? 'This project asks for a hash with each identify(): the HMAC-SHA256 of the user id in hex, made by your backend with the identify secret. '
        : ''}
      At the sign-out of your application call <code className="font-mono">lethe.reset()</code>, so
      that the next visitor of the same browser is somebody else.
    </p>
  )
}

function NoPublicKey() {
  const projectId = useProjectId()
  return (
    <div className="grid justify-items-start gap-3">
      <p>This project has no public key that works. Pages need one to record.</p>
      <LinkButton to="/projects/$projectId/settings/keys" params={{ projectId }} look="primary">
        Make a public key
      </LinkButton>
    </div>
  )
}
