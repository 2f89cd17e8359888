import { Dialog } from '../design/dialog.tsx'

const keys = [
  ['Space, K', 'Play or pause'],
  ['← →', 'Back or forward 5 s'],
  ['Shift ← →', 'Back or forward 30 s'],
  ['< >', 'Slower, faster'],
  ['S', 'Toggle skip idle'],
  ['F', 'Full screen'],
  ['P N', 'Previous or next session'],
  ['?', 'Show shortcuts'],
] as const

export function HelpDialog({ isOpen, onClose }: { isOpen: boolean; onClose: () => void }) {
  return (
    <Dialog
      isOpen={isOpen}
      onClose={onClose}
      title="Keyboard shortcuts"
      description="You can turn them off in your account."
    >
      <dl className="grid grid-cols-[auto_1fr] gap-x-6 gap-y-2">
        {keys.map(([key, what]) => (
          <div key={key} className="contents">
            <dt>
              <kbd className="rounded border border-line bg-sunken px-1.5 py-0.5 font-sans text-sm whitespace-nowrap">
                {key}
              </kbd>
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
    </Dialog>
  )
}
