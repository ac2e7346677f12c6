/** What both sides of a WebSocket send: right handshakes and frames, and such as nobody may. */
import { createHash } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import type { Random } from '../../support/random.ts'

/** RFC 6455 §1.3 */
const guid = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11'
const switching =
  'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n'

/** RFC 6455 §5.2 */
const framesOfServer = [
  '\x81\x02hi',
  '\x81\x02hi\x88\x02\x03\xe8',
  '\x01\x01h\x80\x01i',
  '\x89\x00',
  '\x8a\x7d'.padEnd(127, 'p'),
  '\x81\x82\x00\x00\x00\x00hi',
  '\xc1\x02hi',
  '\x83\x00',
  '\x09\x00',
  '\x81\x7e\xff\xff',
  '\x82\x7f\xff\xff\xff\xff\xff\xff\xff\xff',
  '\x88\x01\x03',
  '\x81\x02\xff\xfe',
  'no frame at all'
]

const mask = '\x00\x00\x00\x00'
const framesOfClient = [
  `\x81\x82${mask}hi`,
  `\x81\x82${mask}hi\x88\x82${mask}\x03\xe8`,
  `\x01\x81${mask}h\x80\x81${mask}i`,
  `\x8a\x80${mask}`,
  `\x89\xfe\x00\x7e${mask}${'p'.repeat(126)}`,
  `\x82\xfe\x20\x00${mask}${'x'.repeat(8192)}`,
  `\x82\xff\x7f\xff\xff\xff\xff\xff\xff\xff${mask}`,
  `\xc1\x82${mask}hi`,
  `\x88\x81${mask}\x03`,
  '\x81\x02hi',
  'GET / HTTP/1.1\r\nHost: x\r\n\r\n'
]

/** The frames of one client, in pieces. */
export const clientFrames = (random: Random): Buffer[] =>
  Array.from({ length: random.integer(0, 3) }, () =>
    Buffer.from(random.pick(framesOfClient), 'latin1')
  )

/** Agrees to a WebSocket, sends what it is told to, and ends when the other side does. */
export function agree({ socket, headers }: IncomingMessage, frames = ''): void {
  const key = headers['sec-websocket-key']
  const accept = createHash('sha1').update(`${key}${guid}`).digest('base64')
  socket.write(`${switching}Sec-WebSocket-Accept: ${accept}\r\n\r\n${frames}`, 'latin1')
  socket.resume().on('end', () => socket.end())
}

/** The end, a reset, or silence. */
export function endSomehow(random: Random, socket: Socket): void {
  const end = random.pick(['end', 'end', 'destroy', 'reset', 'silence'])
  if (end === 'end') socket.end()
  if (end === 'destroy') socket.destroy()
  if (end === 'reset') socket.resetAndDestroy()
}

/** Agrees, late or with garbage behind it, or answers something else. */
export async function switchSomehow(random: Random, request: IncomingMessage): Promise<void> {
  const { socket } = request
  if (random.chance(0.3)) await wait(random.pick([1, 20, 100, 400, 900]))
  if (random.chance(0.6)) {
    agree(request, random.chance(0.5) ? '' : random.pick(framesOfServer))
    await wait(random.pick([0, 1, 30, 300]))
    if (random.chance(0.5)) socket.write(random.pick(framesOfServer), 'latin1')
    if (random.chance(0.3)) socket.destroy()
    return
  }
  const others = [
    `${switching}Sec-WebSocket-Accept: wrong\r\n\r\n`,
    `${switching}\r\n`,
    switching,
    'HTTP/1.1 101 Switching Protocols\r\n\r\n',
    'HTTP/1.1 600 Odd\r\nContent-Length: 2\r\n\r\n{}',
    'HTTP/1.1 099 Odd\r\nContent-Length: 2\r\n\r\n{}',
    'HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\n{}',
    'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab',
    `HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\n${'x'.repeat(70_000)}`,
    random.bytes(100).toString('latin1')
  ]
  socket.write(random.pick(others), 'latin1')
  endSomehow(random, socket)
}
