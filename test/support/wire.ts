/** A gateway before a back-end that records, and the questions that every attack ends with. */
import type { Test } from 'tap'
import { type Files, testGateway } from './gateway.ts'
import { type RawAnswer, raw } from './raw.ts'
import { testUpstream } from './upstream.ts'

export type Wire = Awaited<ReturnType<typeof openWire>>

export type Assert = Pick<Test, 'ok' | 'notOk' | 'equal' | 'match' | 'notMatch' | 'same'>

export const loginPath = '/api/auth/admin/login'

/** One route of each kind: signed in, public, and by role; each with another path at the back-end. */
export function wireRoutes(url: string, upstream: object = {}, more: object = {}) {
  const route = (path: string, rewrite: string, own: object = {}) => ({
    path: `/api/${path}`,
    upstream: 'backend',
    rewrite,
    ...own
  })
  return {
    upstreams: { backend: { url, ...upstream } },
    routes: {
      notices: route('notices', '/internal/notices'),
      things: route('things/*', '/store/*', {
        methods: ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']
      }),
      open: route('open/*', '/public/*', { methods: ['GET', 'POST'], access: 'public' }),
      admin: route('admin/*', '/admin/*', { access: { roles: ['admin'] } }),
      ...more
    }
  }
}

export async function openWire(
  cleanUp: (undo: () => unknown) => void,
  files: Omit<Files, 'routes'> = {},
  answer?: Parameters<typeof testUpstream>[1]
) {
  const backend = await testUpstream(cleanUp, answer)
  const gateway = await testGateway(cleanUp, { ...files, routes: wireRoutes(backend.url) })
  const cookie = await gateway.signIn()
  /** Alice's session, as the value of a field and as a line. */
  return { gateway, backend, cookie, signedIn: `Cookie: ${cookie}` }
}

/** How many answers begin in what came back. */
export const answersBegun = (whole: string) => whole.split(/HTTP\/1\.[01] \d{3} /).length - 1

/** What names the inside: addresses, stacks, packages. */
export const inside =
  /127\.0\.0\.1|localhost|ECONN|UND_ERR|FST_|HPE_|node_modules|node:|\.ts:|\bat \w+ \(|undici|fastify|ioredis|reply-from|find-my-way|llhttp|SyntaxError|RangeError|TypeError/i

/** Every error is JSON with a message for people and a code that stays, and tells nothing of the inside. */
export function isEnvelope(t: Assert, body: string, title = 'the answer'): void {
  let parsed: Record<string, unknown> = {}
  try {
    parsed = JSON.parse(body) as Record<string, unknown>
  } catch {}
  t.match(
    parsed,
    { success: false, message: /\S/, errorCode: /^[a-z]+(?:\.[a-z-]+){0,2}$/ },
    `${title}: enveloped`
  )
  t.notMatch(body, inside, `${title}: tells nothing of the inside`)
}

/**
 * Sends bytes that must not be obeyed: one refusal, then the end of the connection, and nothing for
 * the back-end.
 * @param status any 4xx without it
 */
export async function refuses(
  t: Assert,
  { gateway, backend }: Wire,
  title: string,
  bytes: string | Buffer,
  status?: number
): Promise<RawAnswer> {
  const begun = backend.begun()
  const answer = await raw(gateway.url, bytes, { enough: () => false })
  t.ok(answer.closed, `${title}: the connection ends`)
  t.match(String(answer.status), status === undefined ? /^4\d\d$/ : String(status), title)
  t.equal(answersBegun(answer.whole), 1, `${title}: one answer`)
  isEnvelope(t, answer.body, title)
  t.equal(backend.begun(), begun, `${title}: nothing reached the back-end`)
  return answer
}

/** The next client is served. */
export async function serves(t: Assert, { gateway, backend, cookie }: Wire): Promise<void> {
  const before = backend.seen.length
  const answer = await gateway.call('/api/notices', { cookie })
  t.equal(answer.status, 200, 'the next client is served')
  t.equal(backend.seen.length, before + 1, 'with one request to the back-end')
  t.equal(backend.seen.at(-1)?.url, '/internal/notices', 'at its right path')
}
