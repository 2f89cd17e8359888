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
      <Empty isPage icon="install" title="There is no project yet" actions={may && <NewProject />}>
        {may
          ? 'Persons and recordings belong to a project. Make the first one.'
          : 'Persons and recordings belong to a project. An owner or admin has to make the first one.'}
      </Empty>
    </main>
  )
}
