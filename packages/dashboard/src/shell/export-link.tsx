import type { ReactNode } from 'react'
import { isProven } from '../api/call.ts'
import { DownloadLink } from '../design/button.tsx'
import { sayFailed } from '../design/toast.tsx'

/** A link to a file that needs a recent proof of who downloads it. */
export function ExportLink({ href, children }: { href: string; children: ReactNode }) {
  return (
    <DownloadLink
      href={href}
      download
      onClick={async (event) => {
        event.preventDefault()
        try {
          if (await isProven()) window.location.assign(href)
        } catch (error) {
          sayFailed('The export could not be started', error)
        }
      }}
    >
      {children}
    </DownloadLink>
  )
}
