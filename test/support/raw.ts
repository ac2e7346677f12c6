/** Raw sockets: what no HTTP client would send, and the very bytes that come back. */
import { connect } from 'node:net'

export type RawAnswer = Awaited<ReturnType<typeof raw>>

/** A machine may stand still for seconds; who waits longer waits for nothing. */
const patienceMs = 30_000

/** A connection that is written step by step. */
export type Line = ReturnType<typeof lineTo>

function lineTo(url: string) {
  const { hostname, port } = new URL(url)
  let text = ''
  let over = false
  let look = () => {}
  const socket = connect(Number(port), hostname)
  const closed = new Promise<void>(resolve =>
    socket.on('close', () => {
      over = true
      resolve()
      look()
    })
  )
  socket.on('error', () => {})
  socket.on('data', chunk => {
    text += chunk.toString('latin1')
    look()
  })
  return {
    socket,
    received: () => text,
    closed,
    isClosed: () => over,
    /** Resolves once what came fits, or rejects when the connection closed before. */
    until: async (fits: (received: string) => boolean) =>
      await new Promise<string>((resolve, reject) => {
        look = () => {
          if (fits(text)) resolve(text)
          else if (over) reject(new Error(`the connection closed after: ${text}`))
        }
        look()
      })
  }
}

/** A line that is connected. */
export async function open(cleanUp: (undo: () => unknown) => void, url: string): Promise<Line> {
  const line = lineTo(url)
  cleanUp(() => line.socket.destroy())
  await new Promise<void>(resolve => line.socket.once('connect', resolve))
  return line
}

/** Sends bytes and reads until `enough` is content with what came, the connection closes, or all patience is over. */
export async function raw(
  url: string,
  bytes: string | Buffer,
  { enough = received => answers(received) > 0 }: { enough?: (received: string) => boolean } = {}
) {
  const { socket, received, until } = lineTo(url)
  let isLate = false
  const timer = setTimeout(() => {
    isLate = true
    socket.destroy()
  }, patienceMs)
  socket.write(bytes)
  const isEnough = await until(enough).then(
    () => true,
    () => false
  )
  clearTimeout(timer)
  socket.destroy()
  const whole = received()
  const [head = '', ...rest] = whole.split('\r\n\r\n')
  return {
    status: Number(/^HTTP\/1\.[01] (\d{3})/.exec(head)?.[1] ?? 0),
    head,
    body: rest.join('\r\n\r\n'),
    whole,
    /** Whether the other side closed the connection. */
    closed: !isEnough && !isLate
  }
}

/** How many whole answers with a content-length have come. */
export function answers(received: string): number {
  let count = 0
  for (let rest = received; ;) {
    const end = rest.indexOf('\r\n\r\n')
    if (end < 0) return count
    const length = Number(/^content-length: (\d+)/im.exec(rest.slice(0, end))?.[1] ?? 0)
    if (rest.length < end + 4 + length) return count
    rest = rest.slice(end + 4 + length)
    count++
  }
}

export const request = (line: string, headers: string[] = [], body = '') =>
  `${line} HTTP/1.1\r\n${['Host: gateway.test', ...headers].join('\r\n')}\r\n\r\n${body}`
