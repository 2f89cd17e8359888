/**
 * Frees the memory of bytes that nothing uses any more. Otherwise the engine collects its whole heap
 * for every 64 MB of them, which is half the cost of storing a large chunk.
 */
export function release({ buffer, length }: Uint8Array): void {
  // Small arrays share a buffer with others.
  if (buffer instanceof ArrayBuffer && length > 0 && length === buffer.byteLength)
    buffer.transfer(0)
}
