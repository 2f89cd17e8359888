import type { getInstallState } from '@lethe/contract/dashboard-projects.ts'
import type { Body } from '../api/call.ts'
import { useMe } from '../api/me.ts'
import { useProjectId } from '../api/projects.ts'
import { LinkButton } from '../design/button.tsx'
import { CodeBlock } from '../design/copy.tsx'
import { Step } from './step.tsx'

export type InstallState = Body<typeof getInstallState>

interface Place {
  host: string
  state: InstallState
}

export function Snippet({ host, state }: Place) {
  const { version } = useMe()
  if (!state.publicKey) return <NoPublicKey />
  return (
    <>
      <Step number={1} title="Paste this into the head of every page">
        <CodeBlock label="HTML" code={snippet(host, version, state.publicKey.text)} />
      </Step>
      <Step number={2} title="Say who it is, once somebody has signed in">
        <CodeBlock label="JavaScript" code={identifyCode(state)} />
        <IdentifyNote state={state} />
      </Step>
    </>
  )
}

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

/** Calls before the script has come are kept and done then. */
function snippet(host: string, version: string, publicKey: string): string {
  return `<script>
  window.lethe = window.lethe || (function (calls) {
    var lethe = { calls: calls };
    'init identify reset stop optIn optOut'.split(' ').forEach(function (name) {
      lethe[name] = function () { calls.push([name, arguments]) };
    });
    return lethe;
  })([]);
  lethe.init('${publicKey}', { host: '${host}' });
</script>
<script async crossorigin="anonymous" src="${host}/sdk/${version}/lethe.js"></script>`
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
