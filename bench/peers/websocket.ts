/** A WebSocket server of `ws`: it echoes, or relays to another one by a client of `ws`. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { WebSocket, WebSocketServer } from 'ws'

const [mode, upstream = ''] = process.argv.slice(2)
const server = createServer()
const sockets = new WebSocketServer({ server, perMessageDeflate: false })
sockets.on('connection', socket => {
  socket.on('error', () => {})
  if (mode === 'echo') {
    socket.on('message', (data, isBinary) => socket.send(data, { binary: isBinary }))
    return
  }
  const other = new WebSocket(upstream, { perMessageDeflate: false })
  other.on('error', () => socket.terminate())
  other.on('message', (data, isBinary) => socket.send(data, { binary: isBinary }))
  other.on('close', () => socket.terminate())
  socket.on('close', () => other.terminate())
  socket.pause()
  other.on('open', () => {
    socket.on('message', (data, isBinary) => other.send(data, { binary: isBinary }))
    socket.resume()
  })
})
server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port))
process.once('disconnect', () => process.exit())
