/** What decides where an element stands and what stands around it. */
const PLACE = (
  'display position top right bottom left float clear margin-top margin-right margin-bottom ' +
  'margin-left flex-grow flex-shrink flex-basis order align-self justify-self vertical-align ' +
  'grid-row-start grid-row-end grid-column-start grid-column-end transform z-index'
).split(' ')

/**
 * The attributes that stand for a blocked element: an empty box of its size, in its place. Its tag,
 * id and style may have decided both, and its content is not recorded.
 */
export function boxOf(element: Element): Record<string, string> {
  const computed = getComputedStyle(element)
  const { offsetWidth, offsetHeight } = element as HTMLElement
  // Of an SVG element there is no other size.
  const rectangle = element.getBoundingClientRect()
  const place = PLACE.map((name) => {
    const value = computed.getPropertyValue(name)
    // An inline box would take no size.
    return `${name}:${name === 'display' && value === 'inline' ? 'inline-block' : value};`
  })
  return {
    class: element.getAttribute('class') ?? '',
    style: `box-sizing:border-box;${place.join('')}`,
    rr_width: `${offsetWidth ?? rectangle.width}px`,
    rr_height: `${offsetHeight ?? rectangle.height}px`,
  }
}

/** What the style of such a box may hold. */
export const BOX_STYLE = new RegExp(`^(?:(?:box-sizing|${PLACE.join('|')}):[\\w.,%() -]*;)+$`)
