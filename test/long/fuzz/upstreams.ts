/** Back-ends that answer as a number in the path bids: rightly, late, in halves, garbage. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import { brotliCompressSync, gzipSync } from 'node:zlib'
import { freePort, listen } from '../../support/ports.ts'
import { createRandom, type Random, seedOfText } from '../../support/random.ts'
import type { Places } from './config.ts'
import { noChunks } from './grammar.ts'
import { agree, endSomehow, switchSomehow } from './websockets.ts'

type Answer = (random: Random, request: IncomingMessage, response: ServerResponse) => unknown

export type Upstreams = Awaited<ReturnType<typeof openUpstreams>>

/** Listens on a port of its own that stays its own while it is closed. */
async function openUpstream(cleanUp: (undo: () => unknown) => void, answer: Answer) {
  const state = { calm: true }
  /** The server does not know them any more. */
  const upgraded = new Set<Socket>()
  const server = createServer((request, response) => {
    request.on('error', () => {})
    response.on('error', () => {})
    request.socket.setMaxListeners(0)
    if (state.calm) return healthy(request, response)
    const random = createRandom(seedOfText(`${request.method} ${request.url}`))
    void Promise.try(answer, random, request, response).catch(() => request.socket.destroy())
  })
  server.on('upgrade', (request: IncomingMessage, socket: Socket) => {
    request.on('error', () => {})
    socket.setMaxListeners(0)
    upgraded.add(socket)
    socket.once('close', () => upgraded.delete(socket))
    if (state.calm) return agree(request)
    const random = createRandom(seedOfText(`upgrade ${request.url}`))
    void switchSomehow(random, request).catch(() => socket.destroy())
  })
  server.on('connection', socket => socket.on('error', () => {}))
  server.on('clientError', (_error, socket) => socket.destroy())
  server.keepAliveTimeout = 0
  server.requestTimeout = 0
  const port = await listen(server)
  const cut = () => {
    server.closeAllConnections()
    for (const socket of upgraded) socket.destroy()
  }
  const close = async () => {
    const closed = new Promise(resolve => server.close(resolve))
    cut()
    await closed
  }
  const open = async () => {
    await new Promise<void>(resolve => server.listen(port, '127.0.0.1', resolve))
  }
  cleanUp(close)
  return {
    url: `http://127.0.0.1:${port}`,
    state,
    cut,
    isOpen: () => server.listening,
    toggle: async () => (server.listening ? await close() : await open())
  }
}

export async function openUpstreams(cleanUp: (undo: () => unknown) => void) {
  const steady = await openUpstream(cleanUp, (_random, request, response) =>
    healthy(request, response)
  )
  const faulty = await openUpstream(cleanUp, answerSomehow)
  const narrow = await openUpstream(cleanUp, async (random, request, response) => {
    await wait(random.integer(50, 600))
    healthy(request, response)
  })
  const fickle = await openUpstream(cleanUp, answerSomehow)
  const every = [steady, faulty, narrow, fickle]
  return {
    places: {
      steady: steady.url,
      faulty: faulty.url,
      narrow: narrow.url,
      gone: `http://127.0.0.1:${await freePort()}`,
      fickle: fickle.url
    } satisfies Places,
    /** Opens or closes the fickle one's listener. */
    toggle: fickle.toggle,
    /** From now on every answer is right and at once, and what is connected is cut. */
    calm: async () => {
      for (const { state, cut } of every) {
        state.calm = true
        cut()
      }
      if (!fickle.isOpen()) await fickle.toggle()
    },
    /** From now on they answer as the path bids them. */
    rage: () => {
      for (const { state } of every) state.calm = false
    }
  }
}

const rows = JSON.stringify({ code: 200, rows: [{ id: 1 }, { id: 2 }], total: 2 })

function healthy(request: IncomingMessage, response: ServerResponse): void {
  request.resume()
  response.writeHead(200, { 'content-type': 'application/json' }).end(rows)
}

/** Half of the time the request's body is read, which an answer may not wait for. */
async function answerSomehow(
  random: Random,
  request: IncomingMessage,
  response: ServerResponse
): Promise<void> {
  if (random.chance(0.5)) request.resume()
  if (random.chance(0.3)) await wait(random.pick([1, 20, 100, 400, 900]))
  await random.pick(answers)(random, request, response)
}

const json = 'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n'

/** Bytes as they are, in two pieces at times, and then the end, a reset or silence. */
async function sendRaw(
  random: Random,
  { socket }: IncomingMessage,
  bytes: string | Buffer
): Promise<void> {
  const whole = Buffer.from(bytes as string, 'latin1')
  const middle = random.chance(0.3) ? random.integer(0, whole.length) : whole.length
  socket.write(whole.subarray(0, middle))
  if (middle < whole.length) {
    await wait(random.pick([0, 10, 200]))
    socket.write(whole.subarray(middle))
  }
  endSomehow(random, socket)
}

const sized = (body: string | Buffer, fields = '') =>
  Buffer.concat([
    Buffer.from(`${json}${fields}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n`),
    Buffer.from(body as string)
  ])

/** Answers as bytes. */
const bytesOf: ReadonlyArray<(random: Random) => string | Buffer> = [
  function halfHead(random) {
    return json.slice(0, random.chance(0.5) ? 0 : random.integer(1, 40))
  },
  function halfBody(random) {
    return sized(rows).subarray(0, json.length + random.integer(20, 60))
  },
  function wrongLength(random) {
    const length = random.pick([1, 5000, -1, '1e3', '7, 7'])
    return `${json}Content-Length: ${length}\r\n\r\n${rows}`
  },
  function badChunks(random) {
    const chunks = random.pick([...noChunks, '3\r\nabc\r\n'])
    return `${json}Transfer-Encoding: chunked\r\n\r\n${chunks}0\r\n\r\n`
  },
  function badHead(random) {
    const continues = 'HTTP/1.1 100 Continue\r\n\r\n'.repeat(random.integer(1, 50))
    return random.pick([
      random.bytes(200),
      'HTTP/1.1 999999 X\r\n\r\n',
      'HTTP/9.9 200 OK\r\n\r\n',
      '\r\n\r\n\r\n',
      'ICY 200 OK\r\n\r\n',
      `${json}X-Long: ${'l'.repeat(20_000)}\r\n\r\n`,
      `${json} folded: 1\r\n\r\n`,
      `${json}X: \x00\x01\r\n\r\n`,
      `${json}Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n`,
      'HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n',
      `${continues}${json}Content-Length: 2\r\n\r\n{}`,
      'HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nabcde'
    ])
  },
  function unasked() {
    return Buffer.concat([sized(rows), sized('{"second":"answer"}')])
  },
  function oddJson(random) {
    const depth = random.integer(10, 20_000)
    const bodies = [
      `${'['.repeat(depth)}${']'.repeat(depth)}`,
      `${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`,
      `{"rows":[{"id":${'9'.repeat(random.integer(1, 5000))}}]}`,
      `{"rows":[{"id":1e${'9'.repeat(random.integer(1, 300))}}]}`,
      `{"rows":"${'1.'.repeat(random.integer(1, 3000))}"}`,
      '{"rows":[{"__proto__":{"id":1},"constructor":null}]}',
      '{"rows":[{"id":1},null,7,"x",[]],"rows":{}}',
      '{"rows":"\\ud800"}',
      '{"code":401,"rows":[]}',
      ...['\uFEFF{}', '', 'null', '{', 'not JSON']
    ]
    return sized(random.pick(bodies))
  },
  function coded(random) {
    const bomb = Buffer.alloc(random.pick([1000, 3_000_000, 20_000_000]), '0')
    const [coding, body] = random.pick<readonly [string, () => Buffer]>([
      ['gzip', () => gzipSync(bomb)],
      ['br', () => brotliCompressSync(bomb.subarray(0, 3_000_000))],
      ['gzip', () => gzipSync(rows).subarray(0, 15)],
      ['gzip', () => Buffer.from(rows)],
      ['gzip, gzip', () => gzipSync(gzipSync(rows))],
      ['gzip', () => gzipSync(rows)],
      ['nonsense', () => Buffer.from(rows)]
    ])
    return sized(body(), `Content-Encoding: ${coding}\r\n`)
  }
]

const answers: readonly Answer[] = [
  ...bytesOf.map(
    (bytes): Answer =>
      (random, request) =>
        sendRaw(random, request, bytes(random))
  ),
  function right(_random, request, response) {
    healthy(request, response)
  },
  function rightByChunks(random, _request, response) {
    response.writeHead(200, { 'content-type': 'application/json' })
    response.write(rows.slice(0, 10))
    setTimeout(() => response.end(rows.slice(10)), random.pick([0, 30, 300]))
  },
  function large(random, _request, response) {
    const size = random.pick([65_535, 65_536, 65_537, 300_000, 2_500_000])
    response.writeHead(200, { 'content-type': random.pick(['application/json', 'text/plain']) })
    response.end(Buffer.alloc(size, random.pick(['x', '[', '{"a":', ' '])))
  },
  function ofAnyStatus(random, _request, response) {
    const status = random.pick([
      201, 204, 205, 206, 301, 302, 304, 400, 401, 403, 404, 418, 429, 500, 503, 599
    ])
    response.writeHead(status, {
      'content-type': random.pick(['application/json', 'text/html', 'application/problem+json']),
      'set-cookie': ['given=1; Path=/', 'other=2', 'console_sid=stolen'],
      'location': random.pick(['/elsewhere', 'http://evil.example/', '//x', '%'])
    })
    response.end(status === 204 || status === 304 ? undefined : rows)
  },
  async function trickle(random, { socket }) {
    const bytes = sized(rows)
    for (let at = 0; at < bytes.length && !socket.destroyed; at += 3) {
      socket.write(bytes.subarray(at, at + 3))
      await wait(random.pick([1, 5, 30]))
    }
  }
]
