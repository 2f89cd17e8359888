import replayStyles from '@rrweb/replay/dist/style.css?inline'
import frameStyles from './frame.css?inline'
import { createFramePlayer } from './frame-player.ts'
import { connectMessage, type FromFrame, type ToFrame } from './messages.ts'

/*
 * The page of the replay frame. It cannot send requests: its policy forbids them. What it plays
 * comes through a port from the embedding page.
 */

const style = document.createElement('style')
style.textContent = replayStyles + frameStyles
document.head.append(style)

window.addEventListener('message', ({ data, source, ports: [port] }) => {
  if (data !== connectMessage || source !== window.parent || !port) return
  const root = document.createElement('div')
  document.body.replaceChildren(root)
  const receive = createFramePlayer(root, (message) => port.postMessage(message))
  port.postMessage({ kind: 'alive' } satisfies FromFrame)
  port.onmessage = ({ data: message }: MessageEvent<ToFrame>) => receive(message)
})
