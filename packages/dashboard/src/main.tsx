import { QueryClientProvider } from '@tanstack/react-query'
import { RouterProvider } from '@tanstack/react-router'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { basePath } from './api/base-path.ts'
import { askWith } from './api/call.ts'
import { meQuery } from './api/me.ts'
import { makeQueryClient } from './api/queries.ts'
import { startAnnouncing } from './design/announce.ts'
import { startHints } from './design/hint.ts'
import { Toasts } from './design/toast.tsx'
import { makeRouter } from './router.tsx'
import { makeAsking } from './shell/asking.ts'
import { startFocusKeeping } from './shell/focus.ts'
import { Offline } from './shell/offline.tsx'
import './styles.css'

const queryClient = makeQueryClient(() => {
  const { pathname, href } = router.state.location
  if (pathname === '/sign-in') return
  // A whole load, so that nothing personal is left in the memory of the page.
  window.location.replace(`${basePath}/sign-in?${new URLSearchParams({ next: href })}`)
})
askWith(makeAsking(queryClient))
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
      <Offline />
    </QueryClientProvider>
  </StrictMode>,
)
