/** `explain` of requests: it says what a running gateway then does. */
import t from 'tap'
import type { Explanation } from '../../src/cli/explain.ts'
import { run } from '../support/command.ts'
import { password, testGateway } from '../support/gateway.ts'
import { raw } from '../support/raw.ts'
import { testUpstream } from '../support/upstream.ts'

interface More {
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}

const page = { 'sec-fetch-site': 'same-origin' }
const evil = { 'sec-fetch-site': 'cross-site', 'origin': 'https://evil.example' }
const friend = { origin: 'https://friend.example' }
const login = 'POST /x/api/auth/admin/login'
const signIn = (username: string) => JSON.stringify({ username, password })

type Case = readonly [asks: string, as?: 'alice' | 'bob' | undefined, more?: More]

const cases: readonly Case[] = [
  ['GET /x/api/orders'],
  ['GET /x/api/orders', 'bob'],
  ['GET /x/api/orders?page=2&q=%20a', 'alice'],
  ['HEAD /x/api/orders', 'alice'],
  ['POST /x/api/orders', 'alice', { body: '{"a":1}' }],
  ['POST /x/api/orders', 'alice', { headers: evil, body: '{}' }],
  ['POST /x/api/orders', 'alice', { headers: friend, body: '{}' }],
  ['POST /x/api/orders', 'alice', { body: 'x'.repeat(2048) }],
  ['DELETE /x/api/orders', 'alice'],
  ['GET /api/orders', 'alice'],
  ['GET /x/api/files/a/b%20c?d=e'],
  ['GET /x/api/files/deep/er', 'bob'],
  ['GET /x/api/dateien/a'],
  ['GET /x/api/files/../orders', 'alice'],
  ['GET /x/api/files/%2e%2e/a'],
  [`GET /x/api/files/${'a'.repeat(9000)}`],
  ['GET /x/api/files/a', undefined, { headers: { host: 'evil.example' } }],
  ['GET /x/api/currentUser', 'bob'],
  ['GET /x/api/session'],
  [login, undefined, { body: '{"username":1}' }],
  ['GET /x/api/together', 'bob'],
  ['GET /x/api/rare', 'alice'],
  ['OPTIONS /x/api/orders', undefined, { headers: friend }],
  ['POST /x/api/account/logout', 'bob']
]

const files = (upstream: string) => ({
  gateway: {
    server: { hosts: ['console.example'], mount: '/x', origins: ['https://friend.example'] }
  },
  backend: `${upstream}/base`,
  routes: {
    aliases: { '/api/currentUser': '/api/account/profile', '/api/dateien/*': '/api/files/*' },
    routes: {
      orders: {
        methods: ['GET', 'POST'],
        access: { roles: ['admin'] },
        rewrite: '/v2/orders',
        maxBody: '1KiB'
      },
      files: { path: '/api/files/*', access: 'public', rewrite: '/store/*' },
      deep: { path: '/api/files/deep/*' },
      rare: {},
      together: { parts: { a: { upstream: 'b', rewrite: '/a', into: 'a' } } }
    }
  },
  limits: { limits: { rare: { by: 'user', max: 2, window: '1h', routes: ['rare'] } } }
})

/** As it stands, where fetch would repair the path and choose the host. */
async function call(url: string, asks: string, { headers = {}, body = '' }: More) {
  const ofBody = { 'content-type': 'application/json', 'content-length': `${body.length}` }
  const all = { host: 'console.example', ...(body !== '' && ofBody), ...headers }
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`)
  const bytes = `${asks} HTTP/1.1\r\nconnection: close\r\n${lines.join('')}\r\n${body}`
  const answer = await raw(url, bytes, { enough: () => false })
  const [, code] = /"errorCode":"([^"]*)"/.exec(answer.body) ?? []
  return { ...answer, code }
}

async function explained(folder: string, [asks, as, more = {}]: Case) {
  const headers = Object.entries(more.headers ?? {}).map(([name, value]) => `${name}: ${value}`)
  const { out, err } = await run([
    ...['explain', ...asks.split(' '), '--json', '--config', folder],
    ...(as === undefined ? [] : ['--as', as]),
    ...headers.flatMap(header => ['--header', header]),
    ...(more.body === undefined ? [] : ['--data', more.body])
  ])
  if (out === '') throw new Error(err)
  return JSON.parse(out) as Explanation
}

t.test('explain says of each request what a running gateway then does', async t => {
  const backend = await testUpstream(t.after)
  const gateway = await testGateway(t.after, files(backend.url))
  const cookieOf = async (username: string) => {
    const { head } = await call(gateway.url, login, { body: signIn(username) })
    return /console_sid=[^;]*/.exec(head)?.[0] ?? ''
  }
  const cookies = { alice: await cookieOf('alice'), bob: await cookieOf('bob') }
  for (const each of cases) {
    const [asks, as, { headers = page, body } = {}] = each
    const title = `${asks.slice(0, 60)}${as === undefined ? '' : `, as ${as}`}`
    const { verdict, calls } = await explained(gateway.folder, each)
    const before = backend.seen.length
    const cookie = as !== undefined && { cookie: cookies[as] }
    const sent = { headers: { ...headers, ...cookie }, ...(body !== undefined && { body }) }
    const answer = await call(gateway.url, asks, sent)
    if (verdict.passes) t.ok(answer.status < 400, `${title}: passes (${answer.status})`)
    else t.same([verdict.status, verdict.code], [answer.status, answer.code], title)
    const asked = backend.seen.slice(before).map(({ url }) => backend.url + url)
    const urls = calls.map(({ url }) => url)
    t.same(urls, asked, `${title}: goes to`)
  }
})
