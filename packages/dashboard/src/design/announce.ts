/*
 * What is read out and not seen, as "Copied". One region for the whole page, there from the start:
 * what comes into one that has only just been made is read by few screen readers.
 */

let region: HTMLElement | undefined

export function startAnnouncing(): void {
  region = document.createElement('div')
  region.role = 'status'
  region.className = 'sr-only'
  document.body.append(region)
}

export function announce(text: string): void {
  if (region) region.textContent = text
}
