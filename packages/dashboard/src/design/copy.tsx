import { useEffect, useState } from 'react'
import { announce } from './announce.ts'
import { Icon } from './icon.tsx'

/** Copies a text, and says that it did. */
export function CopyButton({
  text,
  label,
  className = '',
}: {
  text: string
  label: string
  className?: string
}) {
  const [isCopied, setCopied] = useState(false)
  useEffect(() => {
    if (!isCopied) return
    announce('Copied')
    const timer = setTimeout(() => setCopied(false), 1_600)
    return () => {
      announce('')
      clearTimeout(timer)
    }
  }, [isCopied])
  const copy = async () => {
    await writeClipboard(text)
    setCopied(true)
  }
  return (
    <button
      type="button"
      aria-label={label}
      data-hint={isCopied ? 'Copied' : label}
      onClick={(event) => {
        event.preventDefault()
        event.stopPropagation()
        void copy()
      }}
      className={`inline-grid size-6 shrink-0 place-items-center rounded text-muted hover:bg-sunken hover:text-ink ${className}`}
    >
      <Icon
        name={isCopied ? 'check' : 'copy'}
        className={`size-3.5 ${isCopied ? 'text-ok' : ''}`}
      />
    </button>
  )
}

/** The clipboard's own interface is there on https and localhost only. */
async function writeClipboard(text: string): Promise<void> {
  if (navigator.clipboard) return navigator.clipboard.writeText(text)
  const area = document.createElement('textarea')
  area.value = text
  area.className = 'sr-only'
  document.body.append(area)
  area.select()
  document.execCommand('copy')
  area.remove()
}

/** A piece of code to be taken elsewhere. */
export function CodeBlock({ code, label }: { code: string; label: string }) {
  return (
    <figure className="relative overflow-hidden rounded-lg border border-line bg-sunken">
      <figcaption className="flex h-9 items-center justify-between border-b border-line pr-1.5 pl-3 text-xs text-muted">
        {label}
        <CopyButton text={code} label={`Copy ${label}`} />
      </figcaption>
      <pre className="p-3 font-mono text-sm leading-6 wrap-anywhere whitespace-pre-wrap">
        <code>{code}</code>
      </pre>
    </figure>
  )
}

/** A secret that is shown this once. */
export function SecretOnce({ text, label }: { text: string; label: string }) {
  return (
    <div className="grid gap-2">
      <div className="flex items-center gap-2 rounded-md border border-edge bg-sunken py-1.5 pr-1.5 pl-3">
        <code className="min-w-0 flex-1 font-mono text-sm break-all">{text}</code>
        <CopyButton text={text} label={label} />
      </div>
      <p className="flex items-center gap-1.5 text-sm text-warn">
        <Icon name="warning" />
        Shown only once. Store it somewhere safe before you continue.
      </p>
    </div>
  )
}
