import { getReceipt } from '@lethe/contract/dashboard-deletions.ts'
import { getPublicKeys, type ReceiptStatement } from '@lethe/contract/receipt.ts'
import { useMutation } from '@tanstack/react-query'
import { send } from '../api/call.ts'
import { useProjectId } from '../api/projects.ts'
import { Button } from '../design/button.tsx'
import { Icon } from '../design/icon.tsx'
import { counted } from '../design/number.ts'
import { Fact, Facts } from '../design/page.tsx'
import { ErrorLine } from '../design/states.tsx'
import { Time } from '../design/time.tsx'
import { downloadReceipt, type Verdict, verifyReceipt } from './receipt.ts'

/** The receipt of a completed job: to be downloaded, and checked here and now. */
export function ReceiptPanel({ jobId, externalId }: { jobId: string; externalId: string }) {
  const projectId = useProjectId()
  const params = { projectId, jobId }
  const downloading = useMutation({
    mutationFn: () => send(getReceipt, { params }),
    onSuccess: ({ receipt }) => downloadReceipt(jobId, receipt),
  })
  const verifying = useMutation({
    mutationFn: async () => {
      const [{ receipt }, keys] = await Promise.all([
        send(getReceipt, { params }),
        send(getPublicKeys, {}),
      ])
      return verifyReceipt(receipt, keys, externalId)
    },
  })
  return (
    <div className="grid gap-3">
      <div className="flex flex-wrap gap-2">
        <Button icon="download" isBusy={downloading.isPending} onClick={() => downloading.mutate()}>
          Download receipt
        </Button>
        <Button icon="shield" isBusy={verifying.isPending} onClick={() => verifying.mutate()}>
          Verify
        </Button>
      </div>
      <ErrorLine error={downloading.error ?? verifying.error} />
      <div role="status">{verifying.data && <VerdictText verdict={verifying.data} />}</div>
    </div>
  )
}

export function VerdictText({ verdict }: { verdict: Verdict }) {
  if (verdict.kind === 'unable') {
    return (
      <Outcome tone="warn" title="This browser can’t verify receipts">
        Verification needs HTTPS and a recent browser. Download the receipt and run{' '}
        <code className="font-mono text-xs">lethe receipt verify FILE</code>.
      </Outcome>
    )
  }
  if (verdict.kind === 'invalid') {
    return (
      <Outcome tone="danger" title="Not valid">
        {verdict.reason}
      </Outcome>
    )
  }
  if (verdict.isOfPerson === false) {
    return (
      <Outcome tone="danger" title="Genuine, but for a different person">
        The signature is valid, but the receipt is not for this external ID.
      </Outcome>
    )
  }
  return (
    <Outcome tone="ok" title="Genuine and unchanged">
      {verdict.isOfPerson
        ? 'Verified in this browser: signed by this installation, for this external ID.'
        : 'Verified in this browser: signed by this installation.'}
      <StatementFacts statement={verdict.statement} />
    </Outcome>
  )
}

const tones = {
  ok: { box: 'border-ok/40 bg-ok-soft', text: 'text-ok', icon: 'check' },
  warn: { box: 'border-warn/40 bg-warn-soft', text: 'text-warn', icon: 'warning' },
  danger: { box: 'border-danger/40 bg-danger-soft', text: 'text-danger', icon: 'warning' },
} as const

function Outcome({
  tone,
  title,
  children,
}: {
  tone: keyof typeof tones
  title: string
  children: React.ReactNode
}) {
  const { box, text, icon } = tones[tone]
  return (
    <div className={`rounded-lg border px-3.5 py-3 ${box}`}>
      <p className={`flex items-center gap-2 font-medium ${text}`}>
        <Icon name={icon} />
        {title}
      </p>
      <div className="mt-1 text-sm text-pretty">{children}</div>
    </div>
  )
}

function StatementFacts({ statement }: { statement: ReceiptStatement }) {
  const { recordingsVerifiedAt, backupRetentionDays, number, completedAt, removed } = statement
  return (
    <div className="mt-3">
      <Facts>
        <Fact name="Receipt">No. {number} of the project</Fact>
        <Fact name="Completed">
          <Time at={completedAt} />
        </Fact>
        <Fact name="Removed">
          {counted(removed.sessions, 'session')}, {counted(removed.browsers, 'browser')}
        </Fact>
        <Fact name="Recordings">
          {recordingsVerifiedAt ? (
            <>
              verified deleted, <Time at={recordingsVerifiedAt} />
            </>
          ) : (
            'kept, anonymous'
          )}
        </Fact>
        <Fact name="Backups">
          may contain the person’s record for {counted(backupRetentionDays, 'day')} after deletion
        </Fact>
      </Facts>
    </div>
  )
}
