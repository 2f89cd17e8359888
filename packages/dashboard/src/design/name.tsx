/** Something that leaves ink on the page: no space, no control, nothing of no width. */
const visible = /[^\p{C}\p{Z}\p{DI}]/u

/** Characters that turn the direction of what stands around them. */
const turning = /[\u200e\u200f\u202a-\u202e\u2066-\u2069]/g

const unseen = /[\p{Cc}\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu

export function isVisible(text: string | null): text is string {
  return text !== null && visible.test(text)
}

/** What a person is called: the first of name, e-mail and externalId that can be seen. */
export function nameOf(person: {
  name: string | null
  email?: string | null
  externalId: string
}): string {
  const { name, email = null, externalId } = person
  return [name, email].find(isVisible)?.replace(turning, '') ?? shownId(externalId)
}

/**
 * An externalId to look at. One that consists of spaces is quoted: nothing cannot be clicked on.
 * What would break the line or turn the direction of writing is written out, so that no id looks
 * like another one.
 */
export function shownId(externalId: string): string {
  const shown = externalId.replace(unseen, (character) => {
    const code = (character.codePointAt(0) ?? 0).toString(16).padStart(4, '0')
    return { '\n': '\\n', '\r': '\\r', '\t': '\\t' }[character] ?? `\\u${code}`
  })
  return isVisible(shown) ? shown : `“${shown}”`
}

/** An externalId as it is, with every space, and whatever its direction of writing. */
export function ExternalId({ id, className = '' }: { id: string; className?: string }) {
  return (
    <code className={`font-mono text-sm ${className}`}>
      <bdi>{shownId(id)}</bdi>
    </code>
  )
}
