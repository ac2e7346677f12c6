/** Three addresses of one upstream under load, of which one is killed and started again and again. */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { setTimeout as wait } from 'node:timers/promises'
import type { Test } from 'tap'
import { testGateway } from './gateway.ts'
import { freePorts } from './ports.ts'
import { until } from './until.ts'

const streamed = { pieces: 16, bytes: 256 * 1024 }

/** Answers with blocks that name the process; some answers take a while, so that a kill meets them. */
function answer({ url = '' }: IncomingMessage, response: ServerResponse, block: string): void {
  response.on('error', () => {})
  if (!url.startsWith('/streamed')) {
    const json = JSON.stringify({ data: { by: block.repeat(Math.ceil(Math.random() * 200)) } })
    response.setHeader('content-type', 'application/json')
    setTimeout(() => response.end(json), Math.random() < 0.3 ? 20 : 0)
    return
  }
  const piece = block.repeat(streamed.bytes / streamed.pieces / block.length)
  let left = streamed.pieces
  response.writeHead(200, { 'content-type': 'text/plain', 'content-length': streamed.bytes })
  const send = () => {
    if (left-- === 0) return response.end()
    response.write(piece)
    return setTimeout(send, 2)
  }
  send()
}

/** A back-end on one port that is killed, with all its connections, and comes back as another one. */
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

/** Runs load for so long and holds every promise. @returns what happened, for a report */
export async function killUnderLoad(t: Test, seconds: number) {
  const asked = new Map<string, number>()
  const ports = await freePorts(3)
  const backends = await Promise.all(
    ports.map(port =>
      killable(port, ({ method, url = '' }) => {
        const line = `${method} ${url.split('id=')[1]}`
        asked.set(line, (asked.get(line) ?? 0) + 1)
      })
    )
  )
  t.after(() => Promise.all(backends.map(({ kill }) => kill())))
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
  const counts = { requests: 0, cut: 0, unsafeFailed: 0 }
  const collect = async (path: string, blocksOf: (json: any) => string) => {
    const { status, text, json } = await gateway.call(path)
    if (status !== 200) failedGets.push(`${status} ${text}`)
    else if (blocksOf(json).length % 16 > 0 || !isOfOne(blocksOf(json))) faults.push(text)
  }
  const asks: ReadonlyArray<(id: number) => Promise<void>> = [
    id => collect(`/api/collected?id=${id}`, ({ data }) => data.by),
    id => collect(`/api/shaped?id=${id}`, ({ by }) => by),
    async id => {
      const response = await fetch(`${gateway.url}/api/streamed?id=${id}`)
      if (response.status !== 200) failedGets.push(`${response.status} before its start`)
      let received = ''
      try {
        for await (const chunk of response.body ?? []) received += Buffer.from(chunk).toString()
        if (received.length !== streamed.bytes) faults.push(`${received.length} bytes as a whole`)
      } catch {
        counts.cut++
      }
      if (!isOfOne(received)) faults.push('spliced')
    },
    async id => {
      const { status } = await gateway.call(`/api/collected?id=${id}`, { json: { id } })
      if (status !== 200) counts.unsafeFailed++
    }
  ]
  const loading = [...asks, ...asks].map(async ask => {
    while (!over.signal.aborted) await ask(counts.requests++)
  })
  await wait(seconds * 1000)
  over.abort()
  await Promise.all([...loading, killing])

  t.same(failedGets, [], `of ${counts.requests}`)
  t.same(faults, [])
  const timesOf = (method: string) =>
    [...asked].flatMap(([line, times]) => (line.startsWith(method) ? [times] : []))
  t.same([...new Set(timesOf('POST'))], [1], 'no POST reached two back-ends')
  const safe = timesOf('GET')
  t.ok(
    safe.every(times => times <= 2),
    'no GET was asked more than twice'
  )
  await until('nothing is in flight', async () => {
    const metrics = await gateway.metrics()
    return metrics.includes('console_gateway_upstream_in_flight{upstream="b"} 0')
  })
  return { ...counts, kills, askedTwice: safe.filter(times => times === 2).length }
}

const open = { methods: ['GET', 'POST'], access: 'public', rewrite: '/collected' }

async function killedGateway(t: Test, ports: readonly number[]) {
  return await testGateway(t.after, {
    backend: { url: ports.map(port => `http://127.0.0.1:${port}`) },
    routes: {
      routes: {
        collected: open,
        shaped: { ...open, shape: 'data' },
        streamed: { ...open, rewrite: '/streamed' }
      },
      shapes: { data: [{ unwrap: 'data' }] }
    }
  })
}

/** Blocks of one process; the last one may be cut. */
function isOfOne(text: string): boolean {
  const block = text.slice(0, 16)
  return (
    block.length < 16 || text === block.repeat(Math.ceil(text.length / 16)).slice(0, text.length)
  )
}
