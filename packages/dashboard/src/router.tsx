import type { QueryClient } from '@tanstack/react-query'
import {
  type AnyRoute,
  createRootRouteWithContext,
  createRoute,
  createRouter,
  lazyRouteComponent,
  Outlet,
  type RouteComponent,
  redirect,
} from '@tanstack/react-router'
import { basePath } from './api/base-path.ts'
import { meQuery } from './api/me.ts'
import { projectsQuery } from './api/projects.ts'
import type { Listing, Page } from './api/queries.ts'
import { deletionsList, deletionsSearch } from './deletions/query.ts'
import { personsList, personsSearch } from './persons/query.ts'
import {
  personSessionsList,
  personSessionsSearch,
  sessionsList,
  sessionsSearch,
} from './sessions/query.ts'
import { auditList, auditSearch } from './settings/audit-query.ts'
import { NotFound } from './shell/not-found.tsx'
import { Shell } from './shell/shell.tsx'
import { Failed, Waiting } from './shell/waiting.tsx'

interface Context {
  queryClient: QueryClient
}

const root = createRootRouteWithContext<Context>()({
  component: Outlet,
  notFoundComponent: () => <NotFound />,
})

/**
 * Begins with a list while the rest of its page comes; one that was left with several pages open is
 * waited for, so that the page can go back to where it was.
 */
function openList<P extends Page>(
  { queryClient }: Context,
  list: Listing<P>,
  { pages }: { pages?: number },
): Promise<void> | undefined {
  const known = queryClient.getQueryData<{ pages: P[] }>(list.queryKey)
  if (known) return undefined
  const opening = queryClient.prefetchInfiniteQuery(pages === undefined ? list : { ...list, pages })
  return pages === undefined ? undefined : opening
}

/**
 * A screen whose code comes when it is opened. Where that fails the router would reload the page,
 * and lose it to the browser's own error page: under another name the failure is shown in its place.
 */
const screen: typeof lazyRouteComponent = (load, name) =>
  lazyRouteComponent(
    () =>
      load().catch((cause: unknown) => {
        throw new Error('This part of the dashboard could not be loaded.', { cause })
      }),
    name,
  )

/** A screen that needs nothing but its place. */
const at = <Parent extends AnyRoute, const Path extends string>(
  parent: Parent,
  path: Path,
  component: RouteComponent,
) => createRoute({ getParentRoute: () => parent, path, component })

/** Another search of a list is no other page: what is there, and its focus, stays meanwhile. */
const staysMeanwhile = { pendingMs: 60_000 }

const text = (value: unknown) => (typeof value === 'string' && value !== '' ? value : undefined)

const signIn = createRoute({
  getParentRoute: () => root,
  path: '/sign-in',
  validateSearch: ({ next }): { next?: string } => {
    // Only ever to a page of this dashboard.
    const path = text(next)
    return path && /^\/(?![/\\])/.test(path) ? { next: path } : {}
  },
  component: screen(() => import('./sign-in/sign-in.tsx'), 'SignIn'),
})

const setUp = at(
  root,
  '/setup',
  screen(() => import('./sign-in/set-up.tsx'), 'SetUp'),
)

const join = at(
  root,
  '/join',
  screen(() => import('./sign-in/join.tsx'), 'Join'),
)

const reset = at(
  root,
  '/reset',
  screen(() => import('./sign-in/reset.tsx'), 'Reset'),
)

const shared = at(
  root,
  '/shared',
  screen(() => import('./sessions/shared.tsx'), 'Shared'),
)

/** Everything below needs a sign-in. */
const signedIn = createRoute({
  getParentRoute: () => root,
  id: 'signed-in',
  beforeLoad: async ({ context, location }) => {
    const me = await context.queryClient.ensureQueryData(meQuery)
    if (me.isSetUpNeeded) throw redirect({ to: '/setup' })
    if (me.member === null) {
      const next = location.href === '/' ? {} : { next: location.href }
      throw redirect({ to: '/sign-in', search: next })
    }
  },
  component: Outlet,
})

const home = createRoute({
  getParentRoute: () => signedIn,
  path: '/',
  beforeLoad: async ({ context }) => {
    const { projects } = await context.queryClient.ensureQueryData(projectsQuery)
    const [first] = projects
    if (first === undefined) throw redirect({ to: '/no-project' })
    throw redirect({ to: '/projects/$projectId', params: { projectId: first.id } })
  },
})

const noProject = at(
  signedIn,
  '/no-project',
  screen(() => import('./shell/no-project.tsx'), 'NoProject'),
)

const project = createRoute({
  getParentRoute: () => signedIn,
  path: '/projects/$projectId',
  component: Shell,
  notFoundComponent: () => <NotFound />,
})

const projectHome = at(
  project,
  '/',
  screen(() => import('./home/home.tsx'), 'Home'),
)

const persons = createRoute({
  getParentRoute: () => project,
  path: '/persons',
  ...staysMeanwhile,
  validateSearch: personsSearch,
  loaderDeps: ({ search }) => search,
  loader: ({ context, params, deps }) =>
    openList(context, personsList(params.projectId, deps), deps),
  component: screen(() => import('./persons/persons.tsx'), 'Persons'),
})

const person = at(
  project,
  '/persons/$personId',
  screen(() => import('./person/person.tsx'), 'Person'),
)

const personSessions = createRoute({
  getParentRoute: () => person,
  path: '/',
  ...staysMeanwhile,
  validateSearch: personSessionsSearch,
  loaderDeps: ({ search }) => search,
  loader: ({ context, params, deps }) =>
    openList(context, personSessionsList(params.projectId, params.personId), deps),
  component: screen(() => import('./person/sessions.tsx'), 'PersonSessions'),
})

const personProperties = at(
  person,
  '/properties',
  screen(() => import('./person/properties.tsx'), 'PersonProperties'),
)

const personBrowsers = at(
  person,
  '/browsers',
  screen(() => import('./person/browsers.tsx'), 'PersonBrowsers'),
)

const personActivity = at(
  person,
  '/activity',
  screen(() => import('./person/activity.tsx'), 'PersonActivities'),
)

const sessions = createRoute({
  getParentRoute: () => project,
  path: '/sessions',
  ...staysMeanwhile,
  validateSearch: sessionsSearch,
  loaderDeps: ({ search }) => search,
  loader: ({ context, params, deps }) =>
    openList(context, sessionsList(params.projectId, deps), deps),
  component: screen(() => import('./sessions/sessions.tsx'), 'Sessions'),
})

const session = createRoute({
  getParentRoute: () => project,
  path: '/sessions/$sessionId',
  validateSearch: ({ t, tab }): { t?: string; tab?: string } => ({
    ...(text(t) && { t: text(t) as string }),
    ...(text(tab) && { tab: text(tab) as string }),
  }),
  component: screen(() => import('./sessions/session.tsx'), 'Session'),
})

const deletions = createRoute({
  getParentRoute: () => project,
  path: '/deletions',
  ...staysMeanwhile,
  validateSearch: deletionsSearch,
  loaderDeps: ({ search: { job: _, ...filters } }) => filters,
  loader: ({ context, params, deps }) =>
    openList(context, deletionsList(params.projectId, deps), deps),
  component: screen(() => import('./deletions/deletions.tsx'), 'Deletions'),
})

const install = createRoute({
  getParentRoute: () => project,
  path: '/install',
  validateSearch: ({ way }): { way?: 'npm' | 'backend' } =>
    way === 'npm' || way === 'backend' ? { way } : {},
  component: screen(() => import('./install/install.tsx'), 'Install'),
})

const settings = at(
  project,
  '/settings',
  screen(() => import('./settings/settings.tsx'), 'Settings'),
)

const settingsHome = createRoute({
  getParentRoute: () => settings,
  path: '/',
  beforeLoad: async ({ context, params }) => {
    const { permissions } = await context.queryClient.ensureQueryData(meQuery)
    // The first page of those that the member may see.
    throw permissions.includes('keys.read')
      ? redirect({ to: '/projects/$projectId/settings/keys', params, replace: true })
      : redirect({ to: '/projects/$projectId/settings/privacy', params, replace: true })
  },
})

const settingsKeys = at(
  settings,
  '/keys',
  screen(() => import('./settings/keys.tsx'), 'Keys'),
)

const settingsMembers = at(
  settings,
  '/members',
  screen(() => import('./settings/members.tsx'), 'Members'),
)

const settingsPrivacy = at(
  settings,
  '/privacy',
  screen(() => import('./settings/privacy.tsx'), 'Privacy'),
)

const settingsWebhooks = at(
  settings,
  '/webhooks',
  screen(() => import('./settings/webhooks.tsx'), 'Webhooks'),
)

const settingsWebhook = at(
  settings,
  '/webhooks/$webhookId',
  screen(() => import('./settings/webhook.tsx'), 'WebhookPage'),
)

const settingsAudit = createRoute({
  getParentRoute: () => settings,
  path: '/audit',
  ...staysMeanwhile,
  validateSearch: auditSearch,
  loaderDeps: ({ search }) => search,
  loader: ({ context, params, deps }) => openList(context, auditList(params.projectId, deps), deps),
  component: screen(() => import('./settings/audit.tsx'), 'Audit'),
})

const settingsSystem = at(
  settings,
  '/system',
  screen(() => import('./settings/system.tsx'), 'System'),
)

const account = at(
  project,
  '/account',
  screen(() => import('./account/account.tsx'), 'Account'),
)

const tree = root.addChildren([
  signIn,
  setUp,
  join,
  reset,
  shared,
  signedIn.addChildren([
    home,
    noProject,
    project.addChildren([
      projectHome,
      persons,
      person.addChildren([personSessions, personProperties, personBrowsers, personActivity]),
      sessions,
      session,
      deletions,
      install,
      settings.addChildren([
        settingsHome,
        settingsKeys,
        settingsMembers,
        settingsPrivacy,
        settingsWebhooks,
        settingsWebhook,
        settingsAudit,
        settingsSystem,
      ]),
      account,
    ]),
  ]),
])

export function makeRouter(queryClient: QueryClient) {
  return createRouter({
    routeTree: tree,
    basepath: basePath || '/',
    context: { queryClient },
    scrollRestoration: true,
    defaultPreload: 'intent',
    defaultPendingMs: 300,
    defaultPendingComponent: Waiting,
    defaultErrorComponent: Failed,
    // Plain names and texts: what stands in an address is meant to be read and typed.
    parseSearch: (query) => Object.fromEntries(new URLSearchParams(query)),
    stringifySearch: (search) => {
      const entries = Object.entries(search).filter(([, value]) => value !== undefined)
      const query = new URLSearchParams(entries.map(([name, value]) => [name, String(value)]))
      return query.size > 0 ? `?${query}` : ''
    },
  })
}

declare module '@tanstack/react-router' {
  interface Register {
    router: ReturnType<typeof makeRouter>
  }
}
