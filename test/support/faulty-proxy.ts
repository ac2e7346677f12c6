/** A TCP proxy in front of a Redis that fails in the ways that networks and middle boxes do. */
import { once } from 'node:events'
import { setTimeout as wait } from 'node:timers/promises'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { freePort } from './ports.ts'

export type Mode =
  | 'pass'
  /** Answers come this late. */
  | { readonly delayMs: number }
  /** Commands arrive, answers are lost, connections stay open. */
  | 'lose-answers'
  /** Nothing goes through either way, and nobody is told. */
  | 'swallow'
  | 'garbage'
  /** Nobody listens, and what was connected is cut. */
  | 'refuse'
  /** Half of an answer, then the end. */
  | 'cut'
  /** 20 bytes a second. */
  | 'trickle'
  /** Refusing and passing by turns, 150 ms each. */
  | 'flap'

export type FaultyProxy = Awaited<ReturnType<typeof faultyProxy>>

type Line = ReturnType<typeof lineOf>

const lineOf = (client: Socket, mode: Mode) => ({
  client,
  mode,
  news: false,
  lost: false,
  waiting: [] as Buffer[],
  /** Answers keep their order. */
  turn: Promise.resolve() as Promise<unknown>
})

const garbage = Buffer.from(
  `HTTP/1.1 400 Bad Request\r\nContent-Length: 3\r\n\r\n${'\xff'.repeat(64)}\r\n`,
  'latin1'
)

export async function faultyProxy(cleanUp: (undo: () => unknown) => void, target: number) {
  const lines = new Set<Line>()
  let aimed = target
  let mode: Mode = 'pass'
  let newsMode: Mode = 'pass'
  let server: Server | undefined
  const port = await freePort()
  let turns: NodeJS.Timeout | undefined

  const modeFor = (line: Line) => (line.news && newsMode !== 'pass' ? newsMode : line.mode)

  function accept(client: Socket): void {
    const line = lineOf(client, mode)
    lines.add(line)
    const redis = connect(aimed, '127.0.0.1')
    const drip = setInterval(() => {
      const next = line.waiting.shift()
      if (next === undefined) return
      if (modeFor(line) !== 'trickle') {
        return void client.write(Buffer.concat([next, ...line.waiting.splice(0)]))
      }
      client.write(next.subarray(0, 1))
      if (next.length > 1) line.waiting.unshift(next.subarray(1))
    }, 50)
    const end = () => {
      clearInterval(drip)
      lines.delete(line)
      client.destroy()
      redis.destroy()
    }
    for (const socket of [client, redis]) {
      socket
        .setNoDelay(true)
        .on('error', () => {})
        .on('close', end)
    }
    client.on('data', chunk => {
      if (chunk.includes('console-gateway-news')) line.news = true
      if (modeFor(line) === 'swallow') line.lost = true
      if (!line.lost || modeFor(line) === 'lose-answers') redis.write(chunk)
    })
    redis.on('data', chunk => answer(line, chunk, end))
  }

  function answer(line: Line, chunk: Buffer, end: () => void): void {
    const now = modeFor(line)
    // TCP loses nothing in between: a connection that lost something never speaks again.
    if (now === 'lose-answers' || now === 'swallow' || line.lost) return void (line.lost = true)
    if (now === 'trickle' || line.waiting.length > 0) return void line.waiting.push(chunk)
    if (now === 'garbage') return void line.client.write(garbage)
    if (now === 'cut') {
      return void line.client.end(chunk.subarray(0, Math.max(1, chunk.length >> 1)), end)
    }
    const held = typeof now === 'object' ? wait(now.delayMs) : undefined
    line.turn = Promise.all([line.turn, held]).then(() => line.client.write(chunk))
  }

  async function listen(): Promise<void> {
    if (server !== undefined) return
    server = createServer(accept).listen(port, '127.0.0.1')
    await once(server, 'listening')
  }

  async function refuse(): Promise<void> {
    const closed = server && once(server.close(), 'close')
    server = undefined
    for (const { client } of lines) client.resetAndDestroy()
    await closed
  }

  await listen()
  cleanUp(async () => {
    clearInterval(turns)
    await refuse()
  })
  return {
    port,
    /** Where connections go from now on; those that are there stay. */
    aim: (to: number) => {
      aimed = to
    },
    /** @param who `there`: only connections that are there now; `news`: only those that bring news of changes */
    set: async (wanted: Mode, who: 'all' | 'there' | 'news' = 'all') => {
      clearInterval(turns)
      if (who === 'news') return void (newsMode = wanted)
      newsMode = 'pass'
      mode = who === 'all' ? wanted : 'pass'
      for (const line of lines) line.mode = wanted
      if (wanted === 'refuse') return await refuse()
      await listen()
      if (wanted === 'flap') {
        turns = setInterval(() => {
          ;(server === undefined ? listen() : refuse()).catch(() => {})
        }, 150)
      }
    }
  }
}
