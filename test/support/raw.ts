/** Raw sockets: what no HTTP client would send, and the very bytes that come back. */
import { connect } from 'node:net'

export interface RawAnswer {
  readonly status: number
  readonly head: string
  readonly body: string
  readonly whole: string
  /** Whether the other side closed the connection. */
  readonly closed: boolean
}

/** A machine may stand still for seconds; who waits longer waits for nothing. */
const patienceMs = 30_000

/** Sends bytes and reads until `enough` is content with what came, the connection closes, or all patience is over. */
export async function raw(
  url: string,
  bytes: string | Buffer,
  { enough = oneAnswer }: { enough?: (received: string) => boolean } = {}
): Promise<RawAnswer> {
  const { hostname, port } = new URL(url)
  return await new Promise(resolve => {
    let whole = ''
    const socket = connect(Number(port), hostname)
    const finish = (closed: boolean) => {
      clearTimeout(timer)
      socket.destroy()
      const [head = '', ...rest] = whole.split('\r\n\r\n')
      resolve({
        status: Number(/^HTTP\/1\.[01] (\d{3})/.exec(head)?.[1] ?? 0),
        head,
        body: rest.join('\r\n\r\n'),
        whole,
        closed
      })
    }
    const timer = setTimeout(() => finish(false), patienceMs)
    socket.on('connect', () => socket.write(bytes))
    socket.on('data', chunk => {
      whole += chunk.toString('latin1')
      if (enough(whole)) finish(false)
    })
    socket.on('error', () => {})
    socket.on('close', () => finish(true))
  })
}

/** Whether one answer with a length is there in whole. */
function oneAnswer(received: string): boolean {
  return answers(received) >= 1
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
