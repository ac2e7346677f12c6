/** Three addresses of one upstream under load, of which one is killed and started again and again. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { setTimeout as wait } from 'node:timers/promises'
import type { Test } from 'tap'
import { testGateway } from './gateway.ts'
import { freePort } from './ports.ts'
import { until } from './until.ts'

/** A back-end on one port that is killed, with all its connections, and comes back as another one. */
class Killable {
  readonly port: number
  readonly #onRequest: (line: string) => void
  #server: Server | undefined
  #lives = 0

  constructor(port: number, onRequest: (line: string) => void) {
    this.port = port
    this.#onRequest = onRequest
  }

  async start(): Promise<void> {
    const block = `${this.port}-${++this.#lives};`.padEnd(16, '.')
    const server = createServer((request, response) => this.#answer(request, response, block))
    await new Promise<void>(resolve => server.listen(this.port, '127.0.0.1', resolve))
    this.#server = server
  }

  async kill(): Promise<void> {
    const closed = new Promise(resolve => this.#server?.close(resolve) ?? resolve(undefined))
    this.#server?.closeAllConnections()
    await closed
  }

  /** Tells each request before it answers. */
  #answer(request: IncomingMessage, response: ServerResponse, block: string): void {
    const url = new URL(request.url ?? '/', 'http://b')
    this.#onRequest(`${request.method} ${url.searchParams.get('id')}`)
    request.resume()
    response.on('error', () => {})
    if (url.pathname.startsWith('/streamed')) {
      // 256 KiB in sixteen pieces, so that a kill meets many in the middle.
      const chunk = Buffer.from(block.repeat(1024))
      let left = 16
      response.writeHead(200, { 'content-type': 'text/plain', 'content-length': 16 * chunk.length })
      const send = () => {
        if (left-- === 0) return response.end()
        response.write(chunk)
        return setTimeout(send, 2)
      }
      return void send()
    }
    const json = JSON.stringify({ data: { by: block.repeat(Math.ceil(Math.random() * 200)) } })
    const answer = () => response.writeHead(200, { 'content-type': 'application/json' }).end(json)
    // Some take a while: a kill meets them too.
    setTimeout(answer, Math.random() < 0.3 ? 20 : 0)
  }
}

interface Outcome {
  readonly requests: number
  readonly kills: number
  readonly cut: number
  readonly unsafeFailed: number
  readonly askedTwice: number
}

/** Runs load for so long and holds every promise. @returns what happened, for a report */
export async function killUnderLoad(t: Test, seconds: number): Promise<Outcome> {
  const asked = new Map<string, number>()
  const onRequest = (line: string) => void asked.set(line, (asked.get(line) ?? 0) + 1)
  const ports = await Promise.all([freePort(), freePort(), freePort()])
  const backends = ports.map(port => new Killable(port, onRequest))
  t.after(() => Promise.all(backends.map(backend => backend.kill())))
  await Promise.all(backends.map(backend => backend.start()))
  const gateway = await killedGateway(t, ports)

  const over = new AbortController()
  let kills = 0
  const killing = (async () => {
    while (!over.signal.aborted) {
      const next = wait(1000)
      const backend = backends[kills++ % backends.length]
      await backend?.kill()
      await backend?.start()
      await next
    }
  })()
  const failedGets: string[] = []
  const faults: string[] = []
  let requests = 0
  let cut = 0
  let unsafeFailed = 0
  const asks: Record<string, (id: number) => Promise<void>> = {
    collected: async id => {
      const { status, text } = await gateway.call(`/api/collected?id=${id}`)
      if (status !== 200) failedGets.push(`${status} ${text}`)
      else if (!isWhole((JSON.parse(text) as { data: { by: string } }).data.by)) faults.push(text)
    },
    shaped: async id => {
      const { status, text } = await gateway.call(`/api/shaped?id=${id}`)
      if (status !== 200) failedGets.push(`${status} ${text}`)
    },
    streamed: async id => {
      const response = await fetch(`${gateway.url}/api/streamed?id=${id}`)
      if (response.status !== 200) failedGets.push(`${response.status} before its start`)
      let received = ''
      try {
        for await (const chunk of response.body ?? []) received += Buffer.from(chunk).toString()
        if (received.length !== 256 * 1024) faults.push(`${received.length} bytes as a whole`)
      } catch {
        cut++
      }
      if (!isOfOne(received)) faults.push('spliced')
    },
    unsafe: async id => {
      const { status } = await gateway.call(`/api/collected?id=${id}`, { json: { id } })
      if (status !== 200) unsafeFailed++
    }
  }
  const loops = Object.values(asks).flatMap(ask => [ask, ask])
  const loading = loops.map(async ask => {
    while (!over.signal.aborted) await ask(requests++)
  })
  await wait(seconds * 1000)
  over.abort()
  await Promise.all([...loading, killing])

  t.same(failedGets, [], `of ${requests}`)
  t.same(faults, [])
  const unsafe = [...asked].filter(([line]) => line.startsWith('POST'))
  t.ok(unsafe.length > 0)
  t.same(
    unsafe.filter(([, times]) => times > 1),
    [],
    'no POST reached two back-ends'
  )
  const safe = [...asked].filter(([line]) => line.startsWith('GET'))
  t.ok(
    safe.every(([, times]) => times <= 2),
    'no GET was asked more than twice'
  )
  const askedTwice = safe.filter(([, times]) => times === 2).length
  await until('nothing is in flight', async () => {
    const metrics = await (await gateway.ops('/metrics')).text()
    return metrics.includes('console_gateway_upstream_in_flight{upstream="b"} 0')
  })
  return { requests, kills, cut, unsafeFailed, askedTwice }
}

async function killedGateway(t: Test, ports: readonly number[]) {
  const route = (path: string, rewrite: string, more = {}) => ({
    path,
    methods: ['GET', 'POST'],
    access: 'public',
    upstream: 'b',
    rewrite,
    ...more
  })
  return await testGateway(t.after, {
    routes: {
      upstreams: { b: { url: ports.map(port => `http://127.0.0.1:${port}`) } },
      routes: {
        collected: route('/api/collected', '/collected'),
        shaped: route('/api/shaped', '/collected', { shape: 'data' }),
        streamed: route('/api/streamed', '/streamed')
      },
      shapes: { data: [{ unwrap: 'data' }] }
    }
  })
}

/** Blocks of one process, none torn. */
function isWhole(text: string): boolean {
  return text.length % 16 === 0 && isOfOne(text)
}

function isOfOne(text: string): boolean {
  const block = text.slice(0, 16)
  return (
    block.length < 16 || text === block.repeat(Math.ceil(text.length / 16)).slice(0, text.length)
  )
}
