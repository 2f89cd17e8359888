import { Button, IconButton } from '../design/button.tsx'
import { count as shownCount } from '../design/number.ts'

/** What can be done with the chosen persons; it lies over the list's end. */
export function SelectionBar({
  count,
  onDelete,
  onClear,
}: {
  count: number
  onDelete: () => void
  onClear: () => void
}) {
  return (
    <section
      aria-label="Selected people"
      className={`sticky bottom-4 z-20 mt-4 flex justify-center ${count === 0 ? 'hidden' : ''}`}
    >
      <div className="flex items-center gap-3 rounded-xl border border-line bg-raised py-1.5 pr-1.5 pl-4 shadow-high">
        <span role="status" className="tabular">
          {shownCount(count)} selected
        </span>
        <Button size="small" look="danger" icon="deletions" onClick={onDelete}>
          Delete…
        </Button>
        <IconButton label="Clear selection" icon="close" onClick={onClear} />
      </div>
    </section>
  )
}
