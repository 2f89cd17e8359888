import { LinkButton } from '../design/button.tsx'
import { useTitle } from '../design/page.tsx'
import { Empty } from '../design/states.tsx'

export function NotFound({ what = 'page' }: { what?: string }) {
  useTitle('Not found')
  return (
    <div className="grid min-h-[60dvh] place-items-center">
      <Empty
        isPage
        icon="search"
        title={`There is no such ${what}`}
        actions={
          <LinkButton to="/" look="primary">
            Go to the persons
          </LinkButton>
        }
      >
        The address may be mistyped, or what was here is gone.
      </Empty>
    </div>
  )
}
