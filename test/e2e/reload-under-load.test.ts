import { createHash, randomBytes } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { Agent, type IncomingMessage, request as httpRequest, type ServerResponse } from 'node:http'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { setTimeout as wait } from 'node:timers/promises'
import t from 'tap'
import { stringify } from 'yaml'
import { testGateway } from '../support/gateway.ts'
import { testUpstream } from '../support/upstream.ts'
import { until } from '../support/until.ts'

// The whole size: RELOADS=100 CONNECTIONS=200
const reloads = Number(process.env['RELOADS'] ?? 20)
const connections = Number(process.env['CONNECTIONS'] ?? 24)
const piece = Buffer.alloc(4096, 'x')

/** Answers at once with what it got, and streams without end until told. */
async function backend(cleanUp: (undo: () => unknown) => void) {
  let over = false
  const stream = (response: ServerResponse) => {
    const hash = createHash('sha256')
    const next = () => {
      if (over) return void response.end(hash.digest('hex'))
      hash.update(piece)
      response.write(piece)
      setTimeout(next, 5)
    }
    next()
  }
  const { url } = await testUpstream(cleanUp, ({ url: path = '', headers }, response, { body }) => {
    if (path.endsWith('/stream')) return stream(response)
    const hash = createHash('sha256').update(body).digest('hex')
    const seen = { path, user: headers['x-user-id'], bytes: body.length, hash }
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(seen))
  })
  const finish = () => {
    over = true
  }
  return { url, finish }
}

t.test(
  `${reloads} reloads at ${connections} connections, with long uploads, downloads and event streams: no request fails, no connection drops, no session changes`,
  async t => {
    const upstream = await backend(t.after)
    const routes = (version: number) => ({
      upstreams: { b: { url: upstream.url, responseTimeout: version % 2 === 0 ? '60s' : '61s' } },
      routes: {
        data: { path: '/api/data', upstream: 'b', rewrite: `/v${version}/data` },
        stream: { path: '/api/stream', upstream: 'b', rewrite: '/stream', timeout: '30m' },
        upload: {
          path: '/api/upload',
          methods: ['POST'],
          upstream: 'b',
          maxBody: '1GiB',
          timeout: '30m'
        }
      }
    })
    const limits = (max: number) => ({
      inFlightPerUser: 10_000,
      limits: { 'signed-in': { by: 'user', max, window: '1h' } }
    })
    const gateway = await testGateway(t.after, {
      gateway: { server: { requestTimeout: '10m' } },
      routes: routes(0),
      limits: limits(100_000_000)
    })
    const users = await Promise.all(
      ['alice', 'bob', 'alice', 'bob'].map(async (name, index) => ({
        id: name === 'alice' ? '1' : '2',
        cookie: await gateway.signIn(name, { index })
      }))
    )
    const sessions = async () =>
      await Promise.all(
        ['1', '2'].map(
          async user =>
            (await (await gateway.ops(`/ops/api/sessions?user=${user}`)).json()) as {
              sessions: Array<{ id: string; startedAt: string }>
            }
        )
      )
    const told = (found: Awaited<ReturnType<typeof sessions>>) =>
      found
        .flatMap(each => each.sessions.map(({ id, startedAt }) => `${id} ${startedAt}`))
        .toSorted()
    const before = told(await sessions())
    t.equal(before.length, 4)

    const agent = new Agent({ keepAlive: true, maxSockets: connections })
    t.after(() => agent.destroy())
    const sockets = new Set<unknown>()
    const failures: string[] = []
    const state = { over: false, answered: 0 }
    const versions = new Set<string>()
    const send = (path: string, cookie: string, method = 'GET') =>
      httpRequest(gateway.url + path, {
        agent: method === 'GET' && path === '/api/data' ? agent : new Agent(),
        method,
        headers: { cookie }
      })
    const answered = (request: ReturnType<typeof httpRequest>) =>
      new Promise<IncomingMessage>((resolve, reject) =>
        request.once('response', resolve).once('error', reject)
      )

    /** One connection that asks again and again. */
    const client = async (index: number) => {
      const user = users[index % users.length] as (typeof users)[number]
      while (!state.over) {
        try {
          const request = send('/api/data', user.cookie)
          request.once('socket', socket => sockets.add(socket))
          request.end()
          const answer = await answered(request)
          const body = await text(answer)
          if (answer.statusCode !== 200) throw new Error(`${answer.statusCode} ${body}`)
          const { path, user: seen } = JSON.parse(body) as { path: string; user: string }
          if (seen !== user.id) throw new Error(`${user.id} was ${seen}`)
          versions.add(path)
          state.answered++
        } catch (error) {
          failures.push(String(error))
        }
      }
    }
    const download = async (cookie: string) => {
      const request = send('/api/stream', cookie)
      request.end()
      const body = await text(await answered(request))
      const content = body.slice(0, -64)
      return (
        content.length > piece.length &&
        createHash('sha256').update(content).digest('hex') === body.slice(-64)
      )
    }
    const upload = async (cookie: string) => {
      const request = send('/api/upload', cookie, 'POST')
      const done = answered(request)
      const hash = createHash('sha256')
      let bytes = 0
      while (!state.over) {
        const chunk = randomBytes(2048)
        hash.update(chunk)
        bytes += chunk.length
        request.write(chunk)
        await wait(5)
      }
      request.end()
      const found = JSON.parse(await text(await done)) as { bytes: number; hash: string }
      return found.bytes === bytes && found.hash === hash.digest('hex')
    }

    const clients = Array.from({ length: connections }, (_, index) => client(index))
    const longOnes = users.flatMap(({ cookie }) => [download(cookie), upload(cookie)])
    await until(
      'each connection was answered twice',
      () => state.answered >= connections * 2 || failures.length > 0
    )
    for (let version = 1; version <= reloads; version++) {
      writeFileSync(join(gateway.folder, 'routes.yaml'), stringify(routes(version)))
      writeFileSync(join(gateway.folder, 'limits.yaml'), stringify(limits(100_000_000 + version)))
      const outcome = await gateway.reload('operator')
      if (outcome.outcome !== 'reloaded') failures.push(JSON.stringify(outcome))
      // Each config is used before the next comes.
      await until(
        'the config is used',
        () => versions.has(`/v${version}/data`) || failures.length > 0
      )
    }
    state.over = true
    upstream.finish()
    t.same(
      await Promise.all(longOnes),
      longOnes.map(() => true),
      'what was long came whole'
    )
    await Promise.all(clients)
    t.same(failures.slice(0, 5), [])
    t.equal(versions.size, reloads + 1)
    t.equal(sockets.size, connections, 'each client had one connection all the time')
    t.same(told(await sessions()), before)
    for (const { cookie, id } of users) {
      t.match((await gateway.call('/api/account/profile', { cookie })).json, {
        data: { userid: id }
      })
    }
    t.comment(`${state.answered} requests, ${reloads} reloads`)
  }
)
