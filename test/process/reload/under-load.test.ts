/** Reloads while people work. The whole size: RELOADS=100 CONNECTIONS=200 */
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { Agent, type IncomingMessage, request as httpRequest, type ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import { setTimeout as wait } from 'node:timers/promises'
import t from 'tap'
import { testGateway, writeConfig } from '../../support/gateway.ts'
import { testUpstream } from '../../support/upstream.ts'
import { until } from '../../support/until.ts'

const reloads = Number(process.env['RELOADS'] ?? 20)
const connections = Number(process.env['CONNECTIONS'] ?? 24)
const piece = Buffer.alloc(4096, 'x')
const sha256 = (bytes: string | Uint8Array) => createHash('sha256').update(bytes).digest('hex')

const load = { isOver: false }

/** Pieces without end until all is over, and then their hash. */
async function stream(response: ServerResponse): Promise<void> {
  const hash = createHash('sha256')
  while (!load.isOver) {
    hash.update(piece)
    response.write(piece)
    await wait(5)
  }
  response.end(hash.digest('hex'))
}
const backend = await testUpstream(t.after, ({ url: path = '', headers }, response, { body }) => {
  if (path === '/stream') return void stream(response)
  const seen = { path, user: headers['x-user-id'], bytes: body.length, hash: sha256(body) }
  return response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(seen))
})

const routes = (version: number) => {
  const long = { upstream: 'b', timeout: '30m' }
  const upload = { path: '/api/upload', methods: ['POST'], maxBody: '1GiB' }
  return {
    upstreams: { b: { url: backend.url, responseTimeout: `${60 + (version % 2)}s` } },
    routes: {
      data: { path: '/api/data', upstream: 'b', rewrite: `/v${version}/data` },
      stream: { path: '/api/stream', rewrite: '/stream', ...long },
      upload: { ...upload, ...long }
    }
  }
}
const limits = (version: number) => ({
  inFlightPerUser: 10_000,
  limits: { 'signed-in': { by: 'user', max: 100_000_000 + version, window: '1h' } }
})

t.test(`${reloads} reloads at ${connections} connections: nothing fails or drops`, async t => {
  const gateway = await testGateway(t.after, {
    gateway: { server: { requestTimeout: '10m' } },
    routes: routes(0),
    limits: limits(0)
  })
  const names = ['alice', 'bob', 'alice', 'bob']
  const cookies = await Promise.all(names.map(name => gateway.signIn(name)))
  const idOf = (index: number) => (index % 2 === 0 ? '1' : '2')
  const sessions = async () => {
    const found: string[] = []
    for (const user of ['1', '2']) {
      const listed = await gateway.opsJson(`sessions?user=${user}`)
      const sessions = listed.sessions as Array<Record<string, string>>
      found.push(...sessions.map(({ id, startedAt }) => `${id} ${startedAt}`))
    }
    return found.toSorted()
  }
  const before = await sessions()
  t.equal(before.length, 4)

  const agent = new Agent({ keepAlive: true, maxSockets: connections })
  t.after(() => agent.destroy())
  const sockets = new Set<unknown>()
  const failures: string[] = []
  const versions = new Set<string>()
  let answered = 0

  const ask = async (index: number) => {
    const cookie = cookies[index % cookies.length] ?? ''
    const request = httpRequest(`${gateway.url}/api/data`, { agent, headers: { cookie } }).end()
    request.once('socket', socket => sockets.add(socket))
    const [response] = (await once(request, 'response')) as [IncomingMessage]
    const body = await text(response)
    if (response.statusCode !== 200) throw new Error(`${response.statusCode} ${body}`)
    const { path, user } = JSON.parse(body) as { path: string; user: string }
    if (user !== idOf(index)) throw new Error(`${idOf(index)} was ${user}`)
    versions.add(path)
    answered++
  }
  /** One connection that asks again and again. */
  const client = async (index: number) => {
    while (!load.isOver) await ask(index).catch((error: unknown) => failures.push(String(error)))
  }
  const download = async (cookie: string) => {
    const body = await (await fetch(`${gateway.url}/api/stream`, { headers: { cookie } })).text()
    const content = body.slice(0, -64)
    return content.length > piece.length && sha256(content) === body.slice(-64)
  }
  const upload = async (cookie: string) => {
    const hash = createHash('sha256')
    let bytes = 0
    async function* chunks() {
      while (!load.isOver) {
        const chunk = randomBytes(2048)
        hash.update(chunk)
        bytes += chunk.length
        yield chunk
        await wait(5)
      }
    }
    const response = await fetch(`${gateway.url}/api/upload`, {
      method: 'POST',
      headers: { cookie },
      body: chunks() as never,
      duplex: 'half'
    })
    const found = (await response.json()) as { bytes: number; hash: string }
    return found.bytes === bytes && found.hash === hash.digest('hex')
  }

  const clients = Array.from({ length: connections }, (_, index) => client(index))
  const longOnes = cookies.flatMap(cookie => [download(cookie), upload(cookie)])
  await until(
    'each connection was answered twice',
    () => answered >= connections * 2 || failures.length > 0
  )
  for (let version = 1; version <= reloads; version++) {
    writeConfig(gateway.folder, 'routes.yaml', routes(version))
    writeConfig(gateway.folder, 'limits.yaml', limits(version))
    t.match(await gateway.reload('operator'), { outcome: 'reloaded' })
    // Each config is used before the next comes.
    await until(
      'the config is used',
      () => versions.has(`/v${version}/data`) || failures.length > 0
    )
  }
  load.isOver = true
  const areWhole = await Promise.all(longOnes)
  t.ok(areWhole.every(Boolean), 'what was long came whole')
  await Promise.all(clients)
  t.same(failures.slice(0, 5), [])
  t.equal(versions.size, reloads + 1)
  t.equal(sockets.size, connections, 'each client had one connection all the time')
  t.same(await sessions(), before)
  for (const [index, cookie] of cookies.entries()) {
    const { json } = await gateway.call('/api/account/profile', { cookie })
    t.equal(json.data.userid, idOf(index))
  }
  t.comment(`${answered} requests, ${reloads} reloads`)
})

t.end()
