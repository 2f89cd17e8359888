/** The properties that decide the position of an element and of its neighbours. */
const PLACE = (
  'display position top right bottom left float clear margin-top margin-right margin-bottom ' +
  'margin-left flex-grow flex-shrink flex-basis order align-self justify-self vertical-align ' +
  'grid-row-start grid-row-end grid-column-start grid-column-end transform z-index'
).split(' ')

/**
 * Returns the attributes that replace a blocked element by an empty box of its size and position,
 * which its tag, ID and style may have decided.
 */
export function boxOf(element: Element): Record<string, string> {
  const computed = getComputedStyle(element)
  const { offsetWidth, offsetHeight } = element as HTMLElement
  // SVG elements have no offset size.
  const rectangle = element.getBoundingClientRect()
  const place = PLACE.map((name) => {
    const value = computed.getPropertyValue(name)
    // Size does not apply to inline boxes.
    return `${name}:${name === 'display' && value === 'inline' ? 'inline-block' : value};`
  })
  return {
    class: element.getAttribute('class') ?? '',
    style: `box-sizing:border-box;${place.join('')}`,
    rr_width: `${offsetWidth ?? rectangle.width}px`,
    rr_height: `${offsetHeight ?? rectangle.height}px`,
  }
}

/** What the style of such a box may contain. */
export const BOX_STYLE = new RegExp(`^(?:(?:box-sizing|${PLACE.join('|')}):[\\w.,%() -]*;)+$`)
