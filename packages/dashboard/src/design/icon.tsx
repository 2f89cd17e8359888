const paths = {
  home: 'M3.4 9.6 10 4l6.6 5.6M5.2 8.4V16h9.6V8.4M8.4 16v-4.2h3.2V16',
  persons: 'M10 10.2a3.1 3.1 0 1 0 0-6.2 3.1 3.1 0 0 0 0 6.2ZM4 16.4c.7-2.6 3-4 6-4s5.3 1.4 6 4',
  sessions: 'M3 5.2h14v9.6H3zM8.6 7.8v4.4l3.6-2.2z',
  deletions: 'M4 6h12M8 6V4h4v2M5.6 6l.7 10h7.4l.7-10M8.6 9v4.4M11.4 9v4.4',
  install: 'M7 6 3 10l4 4M13 6l4 4-4 4M11.2 4.6l-2.4 10.8',
  settings: 'M3.5 6h5.2M13.3 6h3.2M11 8.2V3.8M3.5 14h3.2M11.3 14h5.2M9 16.2v-4.4',
  search: 'M9 14.2A5.2 5.2 0 1 0 9 3.8a5.2 5.2 0 0 0 0 10.4ZM13 13l3.6 3.6',
  close: 'm5 5 10 10M15 5 5 15',
  check: 'm4.5 10.5 3.6 3.6 7.4-8',
  copy: 'M7.2 7.2h9v9h-9zM12.8 7.2V3.8h-9v9h3.4',
  more: 'M5 10h.01M10 10h.01M15 10h.01',
  chevronDown: 'm5.5 8 4.5 4.5L14.5 8',
  chevronRight: 'm8 5.5 4.5 4.5L8 14.5',
  arrowLeft: 'M16 10H4.4M9 5.2 4.2 10 9 14.8',
  arrowRight: 'M4 10h11.6M11 5.2l4.8 4.8-4.8 4.8',
  plus: 'M10 4.5v11M4.5 10h11',
  menu: 'M3.5 6h13M3.5 10h13M3.5 14h13',
  warning: 'M10 4 2.9 16h14.2zM10 8.6v3.4M10 14.2h.01',
  info: 'M10 17a7 7 0 1 0 0-14 7 7 0 0 0 0 14ZM10 9.4v4M10 6.6h.01',
  refresh: 'M15.8 8.2A6 6 0 1 0 16 11.6M16.2 4.4v3.9h-3.9',
  download: 'M10 3.6v8.6M6.4 8.8l3.6 3.6 3.6-3.6M4 16.2h12',
  external: 'M8.4 4.6H4.2v11.2h11.2v-4.2M11.4 4h4.6v4.6M16 4l-7 7',
  play: 'M6.4 4.4v11.2L15.6 10z',
  pause: 'M7 4.6v10.8M13 4.6v10.8',
  next: 'M4.6 4.8v10.4l7.8-5.2zM15.2 4.8v10.4',
  previous: 'M15.4 4.8v10.4L7.6 10zM4.8 4.8v10.4',
  expand: 'M4 7.6V4h3.6M12.4 4H16v3.6M16 12.4V16h-3.6M7.6 16H4v-3.6',
  skip: 'M3.8 5.4v9.2l6-4.6zM10.2 5.4v9.2l6-4.6z',
  click: 'M8 8l7.6 2.9-3.3 1.4-1.4 3.3zM6 3.4v1.8M3.4 6h1.8M4.2 4.2l1.2 1.2',
  page: 'M5.4 3.4h6l3.2 3.2v10H5.4zM11.2 3.6v3.2h3.2',
  keyboard: 'M2.8 5.6h14.4v8.8H2.8zM5.6 8.4h.01M8.6 8.4h.01M11.4 8.4h.01M14.4 8.4h.01M6.8 11.6h6.4',
  key: 'M13 8.4a3.2 3.2 0 1 0-3.3 3.2l.9-.9h1.2V9.5H13zM9.7 11.6 4.4 16.4M6.2 14.8l1.4 1.4',
  shield:
    'M10 3.2 4.2 5.4v4.2c0 3.6 2.4 6 5.8 7.2 3.4-1.2 5.8-3.6 5.8-7.2V5.4zM7.6 9.9l1.8 1.8 3.2-3.6',
  webhook:
    'M7.4 6.2a2.7 2.7 0 1 1 4.2 2.2l2.2 3.8M6.6 15.6a2.7 2.7 0 1 1 .2-4.7l2.4-4M12.9 15.9a2.7 2.7 0 1 0-1-4.9M6.4 13.4h7.4',
  list: 'M7.2 5.4h9M7.2 10h9M7.2 14.6h9M3.8 5.4h.01M3.8 10h.01M3.8 14.6h.01',
  system: 'M3.4 4.2h13.2v4.6H3.4zM3.4 11.2h13.2v4.6H3.4zM6 6.5h.01M6 13.5h.01',
  signOut: 'M8.2 4H4.4v12h3.8M8 10h8.6M13.4 6.8l3.2 3.2-3.2 3.2',
  sun: 'M10 13a3 3 0 1 0 0-6 3 3 0 0 0 0 6ZM10 2.8v1.4M10 15.8v1.4M2.8 10h1.4M15.8 10h1.4M4.9 4.9l1 1M14.1 14.1l1 1M15.1 4.9l-1 1M5.9 14.1l-1 1',
  moon: 'M15.8 11.6A6.4 6.4 0 0 1 8.4 4.2a6.4 6.4 0 1 0 7.4 7.4Z',
  clock: 'M10 17a7 7 0 1 0 0-14 7 7 0 0 0 0 14ZM10 6.4V10l2.4 1.6',
  browser: 'M3 4.4h14v11.2H3zM3 7.6h14M5.2 6h.01M7.2 6h.01',
  pencil: 'm4 13.2-.4 3.2 3.2-.4 8.6-8.6-2.8-2.8zM11.2 6l2.8 2.8',
} as const

export type IconName = keyof typeof paths

/** A drawing beside words that say the same: assistive technology passes over it. */
export function Icon({ name, className = '' }: { name: IconName; className?: string }) {
  return (
    <svg
      aria-hidden="true"
      viewBox="0 0 20 20"
      className={`shrink-0 ${className.includes('size-') ? '' : 'size-4'} ${className}`}
      fill="none"
      stroke="currentColor"
      strokeWidth={name === 'more' || name === 'list' ? 1.9 : 1.5}
      strokeLinecap="round"
      strokeLinejoin="round"
    >
      <path d={paths[name]} />
    </svg>
  )
}

/** Two waves: the river of forgetting. */
export function Logo({ className = 'size-6' }: { className?: string }) {
  return (
    <svg aria-hidden="true" viewBox="0 0 32 32" className={`shrink-0 ${className}`}>
      <rect width="32" height="32" rx="8" className="fill-accent" />
      <g
        fill="none"
        strokeWidth="2.6"
        strokeLinecap="round"
        className="stroke-[var(--color-on-accent)]"
      >
        <path d="M7 11.5c3-3 6-3 9 0s6 3 9 0" />
        <path d="M7 17.5c3-3 6-3 9 0s6 3 9 0" opacity=".7" />
        <path d="M7 23.5c3-3 6-3 9 0" opacity=".4" />
      </g>
    </svg>
  )
}
