import { useProjectId } from '../api/projects.ts'
import { LinkButton } from '../design/button.tsx'
import { Icon } from '../design/icon.tsx'
import { Time } from '../design/time.tsx'
import type { InstallState } from './browser.tsx'

/** Waits for the first recording, live, and then leads to it. */
export function FirstRecording({ state }: { state: InstallState }) {
  const projectId = useProjectId()
  return (
    <section
      aria-label="First recording"
      className={`mb-5 rounded-lg border px-5 py-4 ${state.session ? 'border-ok/40 bg-ok-soft' : 'border-line bg-surface'}`}
    >
      <div role="status" className="flex flex-wrap items-center justify-between gap-x-6 gap-y-3">
        {state.session ? (
          <>
            <p className="flex items-center gap-2.5">
              <Icon name="check" className="size-5 text-ok" />
              <span>
                <span className="font-medium">Recordings are coming in.</span> The latest started{' '}
                <Time at={state.session.startedAt} as="ago" />.
              </span>
            </p>
            <LinkButton
              to="/projects/$projectId/sessions/$sessionId"
              params={{ projectId, sessionId: state.session.id }}
              look="primary"
              icon="play"
            >
              Watch recording
            </LinkButton>
          </>
        ) : (
          <p className="flex items-center gap-3">
            <span aria-hidden="true" className="relative grid size-5 place-items-center">
              <span className="absolute size-4 animate-ping rounded-full bg-accent/40" />
              <span className="size-2 rounded-full bg-accent" />
            </span>
            <span>
              <span className="font-medium">
                {state.hasBrowser
                  ? 'A browser has connected. Waiting for its first recording…'
                  : 'Waiting for the first recording…'}
              </span>{' '}
              <span className="text-muted">
                This page updates automatically. Open your application in another tab.
              </span>
            </span>
          </p>
        )}
      </div>
      {!state.session && <Hints state={state} />}
    </section>
  )
}

function Hints({ state }: { state: InstallState }) {
  const { publicKey, sampleRate } = state
  const host = window.location.origin
  return (
    <details className="mt-3 border-t border-line pt-3">
      <summary className="w-fit rounded-sm font-medium text-accent">Nothing yet?</summary>
      <ul className="mt-2.5 grid max-w-[72ch] list-disc gap-2 pl-5 text-pretty text-muted">
        <li>
          <Term>Ad blockers</Term> can block the recorder. Try a private window without extensions,
          or serve Lethe from your own host name.
        </li>
        <li>
          <Term>Content-Security-Policy</Term> of your pages must allow{' '}
          <Code>script-src {host}</Code> and <Code>connect-src {host}</Code>.
        </li>
        <li>
          <Term>Origins.</Term>{' '}
          {publicKey?.allowedOrigins ? (
            <>
              The public key only works on <Code>{publicKey.allowedOrigins.join(', ')}</Code>.
            </>
          ) : (
            'The public key works on every origin, so this is not the cause.'
          )}
        </li>
        <li>
          <Term>Sampling.</Term>{' '}
          {sampleRate < 1
            ? `Only ${Math.round(sampleRate * 100)}% of sessions are recorded; your test may not be one of them.`
            : 'Every session is recorded, so this is not the cause.'}
        </li>
        <li>
          <Term>Consent.</Term> With <Code>consent: 'pending'</Code> nothing is recorded until{' '}
          <Code>lethe.optIn()</Code> is called; a browser that opted out is not recorded.
        </li>
      </ul>
    </details>
  )
}

function Term({ children }: { children: React.ReactNode }) {
  return <span className="font-medium text-ink">{children}</span>
}

function Code({ children }: { children: React.ReactNode }) {
  return <code className="font-mono text-sm break-all text-ink">{children}</code>
}
