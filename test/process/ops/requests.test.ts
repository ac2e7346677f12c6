/** `why` finds a request whichever replica answered it, with full rings. */
import { once } from 'node:events'
import { connect } from 'node:net'
import t from 'tap'
import type { RequestsResponse } from '../../../src/admin/requests.ts'
import { run, start } from '../../support/command.ts'
import { configFolder } from '../../support/gateway.ts'
import { askOps } from '../../support/ops.ts'
import { freePorts } from '../../support/ports.ts'
import { request } from '../../support/raw.ts'
import { testRedis } from '../../support/redis.ts'
import { until } from '../../support/until.ts'

const environment = { SESSION_SECRET: 'a secret of at least thirty-two characters' }

/** The bounds of `ops.requests`, as they are by default. */
const kept = { ok: 10_000, failed: 2000 }

const closingBrace = '}'.charCodeAt(0)

/** So many requests on one connection, one after another. */
async function repeat(url: string, path: string, count: number): Promise<void> {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  let left = count
  const send = () => (left-- > 0 ? socket.write(request(`GET ${path}`)) : socket.end())
  // Each answer is a short JSON object.
  socket.on('data', chunk => chunk.at(-1) === closingBrace && send())
  send()
  await once(socket, 'close')
  if (left > 0) throw new Error(`the connection was closed ${left} requests too early`)
}

t.test('full rings of two replicas', async t => {
  const redis = await testRedis(t.after)
  const ports = await freePorts(4)
  async function replica(place: number) {
    const [port, opsPort] = ports.slice(place, place + 2)
    const folder = await configFolder({
      gateway: {
        server: { listen: `127.0.0.1:${port}` },
        ops: { listen: `127.0.0.1:${opsPort}`, requests: { keep: kept.ok } },
        log: { level: 'warn' },
        redis: { url: redis.url },
        session: { secrets: ['${SESSION_SECRET}'] }
      },
      routes: { routes: { fine: { path: '/api/fine', access: 'public', answer: { json: {} } } } },
      users: { users: {} },
      limits: { limits: {} }
    })
    const url = `http://127.0.0.1:${port}`
    const gateway = start(t.after, folder, environment)
    const opsUrl = `http://127.0.0.1:${opsPort}`
    await until('the gateway is ready', async () => {
      const response = await fetch(`${url}/api/fine`).catch(() => undefined)
      return response?.ok === true
    })
    const find = async (query: string) => {
      const response = await askOps(opsUrl, `/ops/api/requests${query}`)
      return (await response.json()) as RequestsResponse
    }
    const why = async (...words: string[]) =>
      await run(['why', ...words, '--config', folder], { env: environment })
    return { gateway, url, find, why }
  }
  const one = await replica(0)
  const other = await replica(2)
  await until('both replicas answer', async () => {
    return (await one.find('?last=1')).kept.length === 2
  })

  const fill = async (url: string) => {
    const connections = Array.from({ length: 2 }, async () => {
      await repeat(url, '/api/nowhere', kept.failed / 2)
      await repeat(url, '/api/fine', kept.ok / 2)
    })
    await Promise.all(connections)
  }
  const isFull = async () =>
    (await one.find('?last=1')).kept.every(
      ({ ok, failed }) => ok.kept === kept.ok && failed.kept === kept.failed
    )
  await until('all rings are full', async () => {
    await Promise.all([fill(one.url), fill(other.url)])
    return await isFull()
  })

  const idOf = async (url: string) => {
    const { headers } = await fetch(`${url}/api/fine`, { headers: { connection: 'close' } })
    return headers.get('x-request-id') ?? ''
  }
  const placeOf = async (id: string) => {
    let place = ''
    await until('the request is remembered', async () => {
      const { requests } = await other.find(`/${id}`)
      place = requests[0]?.replica ?? ''
      return requests.length === 1
    })
    return place
  }
  const ids = new Map<string, string>()
  await until('each replica has answered one', async () => {
    for (const { url } of [one, other]) {
      const id = await idOf(url)
      ids.set(await placeOf(id), id)
    }
    return ids.size === 2
  })
  for (const [place, id] of ids) {
    for (const { find, why } of [one, other]) {
      // A process that a busy machine holds up misses a question.
      await until(`${place} is asked`, async () => {
        const askedAt = performance.now()
        const { requests } = await find(`/${id}`)
        const askedMs = performance.now() - askedAt
        const { code, out } = await why(id)
        const commandMs = performance.now() - askedAt - askedMs
        const words = [`request  ${id}`, `replica ${place}\n`]
        const [request] = requests
        t.comment(`${place}: in ${askedMs.toFixed(1)} ms, the command ${commandMs.toFixed(0)}`)
        return (
          [requests.length, request?.id, request?.status, request?.route].join() ===
            [1, id, 200, 'fine'].join() &&
          code === 0 &&
          words.every(word => out.includes(word)) &&
          out.match(/^Remembered, replica /gm)?.length === 2
        )
      })
    }
  }
  const askedAt = performance.now()
  const { requests, hasMore } = await other.find('?last=500&route=fine')
  t.equal(requests.length, 500)
  t.ok(hasMore)
  t.comment(`the last 500 of all: ${(performance.now() - askedAt).toFixed(1)} ms`)
})
