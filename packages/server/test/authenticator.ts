import { createHmac } from 'node:crypto'
import { onTestFinished, vi } from 'vitest'

/** Until the test ends this process has one time, so that no code expires between two requests. */
export function holdTime(): void {
  vi.useFakeTimers({ toFake: ['Date'] })
  onTestFinished(() => {
    vi.useRealTimers()
  })
}

/** The code that an authenticator shows at this moment (RFC 6238), or so many steps later. */
export function codeOf(base32: string, steps = 0): string {
  const bits = [...base32.replaceAll('=', '')]
    .map((letter) => 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'.indexOf(letter))
    .map((number) => number.toString(2).padStart(5, '0'))
    .join('')
  const bytes = bits.match(/.{8}/g)!.map((byte) => Number.parseInt(byte, 2))
  const counter = Buffer.alloc(8)
  counter.writeBigUInt64BE(BigInt(Math.floor(Date.now() / 30_000) + steps))
  const mac = createHmac('sha1', Buffer.from(bytes)).update(counter).digest()
  const offset = mac.at(-1)! & 15
  return String((mac.readUInt32BE(offset) & 0x7fffffff) % 1_000_000).padStart(6, '0')
}

/** A code that is not the one of this moment, nor of those right before and after it. */
export function wrongCodeOf(base32: string, n = 0): string {
  return String((Number(codeOf(base32)) + 500_000 + n) % 1_000_000).padStart(6, '0')
}
