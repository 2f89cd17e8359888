/** A function of ours as the page may call it: whatever goes wrong in it stays in it. */
export function quiet<A extends unknown[]>(run: (...input: A) => void) {
  return (...input: A) => {
    try {
      run(...input)
    } catch {}
  }
}

/** For the developer of the page. Never says what was given: it could be personal. */
export const warn = (text: string) => console.warn(`lethe: ${text}`)
