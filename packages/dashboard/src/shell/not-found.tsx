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
        title={`${what[0]?.toUpperCase()}${what.slice(1)} not found`}
        actions={
          <LinkButton to="/" look="primary">
            Go to Home
          </LinkButton>
        }
      >
        The address may be wrong, or it was deleted.
      </Empty>
    </div>
  )
}
