import { useMay } from '../api/me.ts'
import { useTitle } from '../design/page.tsx'
import { Empty } from '../design/states.tsx'
import { NewProject } from './new-project.tsx'

/** An installation whose last project was never made: the command line can do without one. */
export function NoProject() {
  useTitle('No project')
  const may = useMay('projects.write')
  return (
    <main tabIndex={-1} className="grid min-h-dvh place-items-center outline-none">
      <Empty isPage icon="install" title="No project yet" actions={may && <NewProject />}>
        {may
          ? 'People and recordings belong to a project. Create the first one.'
          : 'People and recordings belong to a project. Ask an owner or admin to create the first one.'}
      </Empty>
    </main>
  )
}
