/**
 * Gives the memory of bytes back at once that nobody looks at any more. Left to the engine they are
 * garbage that it counts: it goes through its whole heap for every 64 MB of them, which is half of
 * what it takes to store a large chunk.
 */
export function release({ buffer, length }: Uint8Array): void {
  // Small ones share a buffer with others.
  if (buffer instanceof ArrayBuffer && length > 0 && length === buffer.byteLength)
    buffer.transfer(0)
}
