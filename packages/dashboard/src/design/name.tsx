/** Something that leaves ink on the page: no space, no control, nothing of no width. */
const visible = /[^\p{C}\p{Z}\p{DI}]/u

/** Characters that turn the direction of what stands around them. */
const turning = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g

/**
 * An emoji, which keeps its joiners, or a character that is written out: one without ink that is no
 * plain space, or a backslash that would look like the start of one that is written out.
 */
const unseen = /(\p{RGI_Emoji})|[[\p{C}\p{Z}\p{DI}\u2800]--[ ]]|\\(?=u[\da-f]{4}|u\{)/gv

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
 * An externalId to look at, so that no id looks like another one: what cannot be seen is written
 * out, and so is every character beyond ASCII where composed characters would look the same. Spaces
 * at its ends are quoted.
 */
export function shownId(externalId: string): string {
  const isComposed = externalId.normalize() === externalId
  const shown = externalId.replace(isComposed ? unseen : beyondAscii, (character, emoji) =>
    typeof emoji === 'string' ? emoji : writtenOut(character),
  )
  return shown.trim() === shown ? shown : `“${shown}”`
}

const beyondAscii = /[^ -~]/gu

function writtenOut(character: string): string {
  if (character === '\\') return '\\\\'
  const code = character.codePointAt(0) ?? 0
  const digits = code.toString(16).padStart(4, '0')
  return code > 0xffff ? `\\u{${digits}}` : `\\u${digits}`
}

/** An externalId as it is, with every space, and whatever its direction of writing. */
export function ExternalId({ id, className = '' }: { id: string; className?: string }) {
  return (
    <code className={`font-mono text-sm ${className}`}>
      <bdi>{shownId(id)}</bdi>
    </code>
  )
}
