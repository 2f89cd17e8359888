import { QueryClientProvider } from '@tanstack/react-query'
import { RouterProvider } from '@tanstack/react-router'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { meQuery } from './api/me.ts'
import { makeQueryClient } from './api/queries.ts'
import { startAnnouncing } from './design/announce.ts'
import { startHints } from './design/hint.ts'
import { Toasts } from './design/toast.tsx'
import { makeRouter } from './router.tsx'
import { startFocusKeeping } from './shell/focus.ts'
import './styles.css'

const queryClient = makeQueryClient(async () => {
  const { pathname, href } = router.state.location
  if (pathname === '/sign-in') return
  await queryClient.invalidateQueries(meQuery)
  await router.navigate({ to: '/sign-in', search: { next: href }, replace: true })
})
const router = makeRouter(queryClient)

startHints()
startAnnouncing()
startFocusKeeping(router)
// Asked for before anything else: every page waits for it.
void queryClient.prefetchQuery(meQuery)
createRoot(document.getElementById('root') as HTMLElement).render(
  <StrictMode>
    <QueryClientProvider client={queryClient}>
      <RouterProvider router={router} />
      <Toasts />
    </QueryClientProvider>
  </StrictMode>,
)
