/**
 * A back-end on loopback with every vice, chosen by the last segment of the path:
 * `/any/prefix/drip?everyMs=100`. A path that names no vice gets a sound response.
 */
import { readFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { Socket } from 'node:net'
import { gzipSync } from 'node:zlib'
import { testAuthority } from './authority.ts'
import { listen } from './ports.ts'
import { createRandom, freshSeed, type Random } from './random.ts'

export interface MisbehavingUpstream {
  readonly url: string
  /** Of its random choices: print it where a test may fail by them. */
  readonly seed: number
  /** Requests that began, by the name of their vice. */
  readonly requests: (vice: string) => number
  /** Requests whose response is not complete and whose connection is open. */
  readonly inFlight: () => number
  /** Connections that it closed by the vice `closes-kept`. */
  readonly closedKept: () => number
  /** Breaks all connections and refuses new ones. */
  readonly stop: () => Promise<void>
  /** Listens again, at the same port. */
  readonly start: () => Promise<void>
}

interface Options {
  readonly seed?: number
  /** Speaks TLS, with a certificate for this name. */
  readonly tlsName?: string
}

interface Visit {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly socket: Socket
  /** A number of the query, or what holds without it. */
  readonly number: (name: string, otherwise: number) => number
  readonly random: Random
  readonly onClosedKept: () => void
}

const json = { 'content-type': 'application/json' }
const okLine = 'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n'
const piece = Buffer.alloc(16 * 1024, 'x')
/** Made at once: to pack it takes longer than some time-outs. */
const bomb = gzipSync(Buffer.alloc(16 * 2 ** 20), { level: 1 })

/** Writes at each interval until the connection is closed or `write` returns false. */
function everyMs(socket: Socket, ms: number, write: () => unknown): void {
  const timer = setInterval(() => {
    if (write() === false) clearInterval(timer)
  }, ms)
  socket.once('close', () => clearInterval(timer))
}

/** Pieces as fast as they are taken, `total` bytes of them. */
function writeBytes(response: ServerResponse, total: number): void {
  let left = total
  const more = () => {
    while (left > 0) {
      if (response.destroyed) return
      const next = piece.subarray(0, Math.min(left, piece.length))
      left -= next.length
      if (!response.write(next)) return void response.once('drain', more)
    }
    response.end()
  }
  more()
}

const vices: Readonly<Record<string, (visit: Visit) => void>> = {
  /** The first byte comes after `ms`. */
  'slow': ({ response, number }) => {
    setTimeout(() => response.writeHead(200, json).end('{"slow":true}'), number('ms', 1000))
  },
  'silent': () => {},
  /** Says `length` bytes, sends half of them, and closes in order. */
  'truncated': ({ socket, number }) => {
    const length = number('length', 100)
    socket.end(`${okLine}Content-Length: ${length}\r\n\r\n${'x'.repeat(length / 2)}`)
  },
  /** Resets the connection after `bytes` of a body; after 0 there is no response at all. */
  'reset': ({ socket, number }) => {
    const bytes = number('bytes', 100)
    if (bytes === 0) return void socket.resetAndDestroy()
    const head = `${okLine}Content-Length: ${2 * bytes}\r\n\r\n`
    // The kernel may drop what was not read yet, so the reset follows later.
    socket.write(head + 'x'.repeat(bytes), () => setTimeout(() => socket.resetAndDestroy(), 30))
  },
  'endless': ({ response }) => {
    response.writeHead(200, { 'content-type': 'application/octet-stream' })
    writeBytes(response, Infinity)
  },
  'two-lengths': ({ socket }) => {
    socket.write(`${okLine}Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}`)
  },
  'invalid': ({ socket }) => {
    socket.write('SSH-2.0-OpenSSH_9.2\r\n')
  },
  /** 16 MiB in less than 100 KiB. */
  'gzip-bomb': ({ response }) => {
    response.writeHead(200, { ...json, 'content-encoding': 'gzip', 'content-length': bomb.length })
    response.end(bomb)
  },
  /** `bytes` at once, then a byte at each `everyMs`, of `type`, without end. */
  'drip': ({ response, request, socket, number }) => {
    const type = new URL(request.url ?? '', 'http://b').searchParams.get('type') ?? 'text/plain'
    response.writeHead(200, { 'content-type': type })
    response.write('x'.repeat(number('bytes', 1)))
    everyMs(socket, number('everyMs', 1000), () => response.write('x'))
  },
  /** `bytes` at once, then nothing more, while the response has no end. */
  'stalls': ({ response, request, number }) => {
    const type = new URL(request.url ?? '', 'http://b').searchParams.get('type') ?? 'text/plain'
    response.writeHead(200, { 'content-type': type })
    response.write('x'.repeat(number('bytes', 1)))
  },
  /** A sound response of `bytes`, streamed. */
  'large': ({ response, number }) => {
    const bytes = number('bytes', 2 ** 20)
    response.writeHead(200, { ...json, 'content-length': bytes })
    writeBytes(response, bytes)
  },
  /** Sound, but half of the connections are closed soon afterwards, without a word. */
  'closes-kept': ({ response, socket, random, onClosedKept }) => {
    response.writeHead(200, json).end('{"kept":true}')
    if (random.chance(0.5)) return
    setTimeout(
      () => {
        onClosedKept()
        socket.destroy()
      },
      random.integer(0, 3)
    )
  }
}

export async function misbehavingUpstream(
  cleanUp: (undo: () => unknown) => void,
  { seed = freshSeed(), tlsName }: Options = {}
): Promise<MisbehavingUpstream> {
  const random = createRandom(seed)
  const requests = new Map<string, number>()
  let inFlight = 0
  let closedKept = 0
  const visit = (request: IncomingMessage, response: ServerResponse) => {
    inFlight++
    response.once('close', () => inFlight--)
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://b')
    const name = pathname.slice(pathname.lastIndexOf('/') + 1)
    requests.set(name, (requests.get(name) ?? 0) + 1)
    const vice = Object.hasOwn(vices, name) ? vices[name] : undefined
    request.resume()
    if (vice === undefined) return void response.writeHead(200, json).end('{"fine":true}')
    vice({
      request,
      response,
      socket: request.socket,
      number: (key, otherwise) => Number(searchParams.get(key) ?? otherwise),
      random,
      onClosedKept: () => closedKept++
    })
  }
  const server = createHttpServer(cleanUp, tlsName).on('request', visit)
  // It never hangs up by itself, however long this process stands still.
  server.keepAliveTimeout = 0
  const port = await listen(server)
  const stop = async () => {
    if (!server.listening) return
    server.closeAllConnections()
    await new Promise(resolve => server.close(resolve))
  }
  cleanUp(stop)
  return {
    url: `${tlsName === undefined ? 'http' : 'https'}://127.0.0.1:${port}`,
    seed,
    requests: name => requests.get(name) ?? 0,
    inFlight: () => inFlight,
    closedKept: () => closedKept,
    stop,
    start: async () =>
      await new Promise((resolve, reject) => {
        server.once('error', reject).listen(port, '127.0.0.1', () => {
          server.off('error', reject)
          resolve()
        })
      })
  }
}

function createHttpServer(cleanUp: (undo: () => unknown) => void, tlsName?: string): Server {
  if (tlsName === undefined) return createServer()
  const { key, certificate } = testAuthority(cleanUp, `DNS:${tlsName}`)
  return createTlsServer({ key: readFileSync(key), cert: readFileSync(certificate) }) as never
}
