import { Outlet, useLocation } from '@tanstack/react-router'
import { useMay } from '../api/me.ts'
import { useProjectId } from '../api/projects.ts'
import { LinkTab, LinkTabs } from '../design/page.tsx'
import { Empty } from '../design/states.tsx'

export function Settings() {
  const params = { projectId: useProjectId() }
  const mayMembers = useMay('members.read')
  const mayAudit = useMay('audit.read')
  const maySystem = useMay('system.read')
  const mayWebhooks = useMay('webhooks.read')
  const mayKeys = useMay('keys.read')
  const base = '/projects/$projectId/settings'
  const { pathname } = useLocation()
  const [, part = ''] = pathname.split('/settings/')
  const needed: Record<string, boolean> = {
    keys: mayKeys,
    members: mayMembers,
    webhooks: mayWebhooks,
    audit: mayAudit,
    system: maySystem,
  }
  const isAllowed = needed[part.split('/')[0] ?? ''] ?? true
  return (
    <div className="mx-auto w-full max-w-[64rem] px-4 py-6 sm:px-8">
      <h1 className="pb-2">Settings</h1>
      <div className="mb-5 border-b border-line">
        <LinkTabs label="Settings">
          {mayKeys && (
            <LinkTab to={`${base}/keys`} params={params}>
              Keys
            </LinkTab>
          )}
          {mayMembers && (
            <LinkTab to={`${base}/members`} params={params}>
              Members
            </LinkTab>
          )}
          <LinkTab to={`${base}/privacy`} params={params}>
            Privacy
          </LinkTab>
          {mayWebhooks && (
            <LinkTab to={`${base}/webhooks`} params={params}>
              Webhooks
            </LinkTab>
          )}
          {mayAudit && (
            <LinkTab to={`${base}/audit`} params={params}>
              Audit log
            </LinkTab>
          )}
          {maySystem && (
            <LinkTab to={`${base}/system`} params={params}>
              System
            </LinkTab>
          )}
        </LinkTabs>
      </div>
      {isAllowed ? <Outlet /> : <Forbidden />}
    </div>
  )
}

/** A page whose address somebody knows who may not see it. */
function Forbidden() {
  return (
    <div className="card">
      <Empty icon="shield" title="Your role does not allow this page">
        Ask an owner or admin if you need it.
      </Empty>
    </div>
  )
}
