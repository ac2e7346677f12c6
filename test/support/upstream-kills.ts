/** A back-end on one port that is killed, with all its connections, and comes back as another one. */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'

export const streamedBytes = 256 * 1024
const pieces = 16

/** Answers with blocks that name the process; some answers take a while, so that a kill meets them. */
function answer({ url = '' }: IncomingMessage, response: ServerResponse, block: string): void {
  response.on('error', () => {})
  if (!url.startsWith('/streamed')) {
    const json = JSON.stringify({ data: { by: block.repeat(Math.ceil(Math.random() * 200)) } })
    response.setHeader('content-type', 'application/json')
    setTimeout(() => response.end(json), Math.random() < 0.3 ? 20 : 0)
    return
  }
  const piece = block.repeat(streamedBytes / pieces / block.length)
  let left = pieces
  response.writeHead(200, { 'content-type': 'text/plain', 'content-length': streamedBytes })
  const send = () => {
    if (left-- === 0) return response.end()
    response.write(piece)
    return setTimeout(send, 2)
  }
  send()
}

export async function killable(port: number, onRequest: (request: IncomingMessage) => void) {
  let server: Server
  let lives = 0
  const start = async () => {
    const block = `${port}-${++lives};`.padEnd(16, '.')
    server = createServer((request, response) => {
      onRequest(request.resume())
      answer(request, response, block)
    }).listen(port, '127.0.0.1')
    await once(server, 'listening')
  }
  await start()
  const kill = async () => {
    const closed = new Promise(resolve => server.close(resolve))
    server.closeAllConnections()
    await closed
  }
  return { start, kill }
}
