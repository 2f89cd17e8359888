import type { ReactNode } from 'react'
import { LinkButton } from '../design/button.tsx'
import { Logo } from '../design/icon.tsx'
import { useTitle } from '../design/page.tsx'

/** The page around a form for somebody who is not signed in. */
export function SignInFrame({
  title,
  description,
  children,
  foot,
}: {
  title: string
  description?: ReactNode
  children: ReactNode
  foot?: ReactNode
}) {
  useTitle(title)
  return (
    <main tabIndex={-1} className="grid min-h-dvh place-items-center px-4 py-10 outline-none">
      <div className="w-full max-w-[25rem]">
        <div className="mb-6 flex items-center justify-center gap-2.5">
          <Logo className="size-7" />
          <span className="text-lg font-semibold tracking-tight">Lethe</span>
        </div>
        <div className="card p-6 shadow-low sm:p-7">
          <h1>{title}</h1>
          {description && <div className="mt-1.5 text-pretty text-muted">{description}</div>}
          <div className="mt-5">{children}</div>
        </div>
        {foot && <div className="mt-4 text-center text-sm text-pretty text-muted">{foot}</div>}
      </div>
    </main>
  )
}

/** Such a page where there is nothing to fill in. */
export function DeadEnd({ title, description }: { title: string; description: string }) {
  return (
    <SignInFrame title={title} description={description}>
      <LinkButton to="/sign-in" look="primary" className="w-full">
        Go to sign-in
      </LinkButton>
    </SignInFrame>
  )
}
