import { IncrementalSource, MouseInteractions } from '@rrweb/types'
import { finite, isId, isRecord, listOf, text } from './untrusted.ts'

type Data = Record<string, unknown>

const interactions = new Set(
  Object.values(MouseInteractions).filter((value) => typeof value === 'number'),
)

/**
 * Returns what the visitor did (pointer, scrolling, input, selection), reduced to the numbers and
 * text that the player reads; undefined for other sources: canvas commands, media, custom elements.
 */
export function harmlessInput(data: Data): Data | undefined {
  const { source, id } = data
  switch (source) {
    case IncrementalSource.MouseMove:
    case IncrementalSource.TouchMove:
    case IncrementalSource.Drag:
      return harmlessMoves(data)
    case IncrementalSource.MouseInteraction:
      if (!isId(id) || !interactions.has(data.type as MouseInteractions)) return undefined
      return { source, id, type: data.type, x: finite(data.x) ?? 0, y: finite(data.y) ?? 0 }
    case IncrementalSource.Scroll:
      return isId(id) ? { source, id, x: finite(data.x) ?? 0, y: finite(data.y) ?? 0 } : undefined
    case IncrementalSource.Input:
      if (!isId(id)) return undefined
      return { source, id, text: text(data.text), isChecked: data.isChecked === true }
    case IncrementalSource.Selection:
      return { source, ranges: listOf(data.ranges, harmlessRange) }
    case IncrementalSource.Font:
      return harmlessFont(data)
  }
  return undefined
}

function harmlessMoves({ source, positions }: Data): Data | undefined {
  const moves = listOf(positions, (position) => {
    const [x, y] = [finite(position.x), finite(position.y)]
    if (x === undefined || y === undefined || !isId(position.id)) return undefined
    const timeOffset = Math.min(Math.max(finite(position.timeOffset) ?? 0, -10_000), 0)
    return { x, y, id: position.id, timeOffset }
  })
  return moves.length > 0 ? { source, positions: moves } : undefined
}

function harmlessRange({ start, startOffset, end, endOffset }: Data): Data | undefined {
  if (![start, startOffset, end, endOffset].every(isId)) return undefined
  return { start, startOffset, end, endOffset }
}

/** Keeps fonts with recorded bytes. One with an address would be fetched. */
function harmlessFont({ source, family, buffer, fontSource, descriptors }: Data): Data | undefined {
  const isRecorded = buffer === true && text(fontSource).startsWith('[')
  if (!isRecorded || text(family) === '') return undefined
  const kept = isRecord(descriptors)
    ? Object.entries(descriptors).filter(
        ([name, value]) => /^(?:style|weight|stretch)$/.test(name) && typeof value === 'string',
      )
    : []
  return { source, family, buffer, fontSource, descriptors: Object.fromEntries(kept) }
}
