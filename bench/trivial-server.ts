/** Reads a body and responds at once: shows what an attacker of attacks.ts takes from the client. */
import { createServer } from 'node:http'

const server = createServer((request, response) => {
  request.resume().on('end', () => response.writeHead(204).end())
})
// Input that is not HTTP or was aborted.
server.on('clientError', (_error, socket) => socket.destroy())
server.listen(0, '127.0.0.1', () => {
  const { port } = server.address() as { port: number }
  console.log(`listens on http://127.0.0.1:${port}`)
})
