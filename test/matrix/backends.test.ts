/** Each simulated back-end does what its family does, and refuses what its family refuses. */
import tap from 'tap'
import { type Backend, itemCount, users } from './backend.ts'
import { backend as drf } from './backends/drf.ts'

/** What a client that knows a family sends, and what it reads from the responses. */
interface Client {
  readonly start: (cleanUp: (undo: () => unknown) => void) => Promise<Backend>
  readonly signIn: (password: string) => Sent
  /** The members of a successful sign-in. */
  readonly tokens: (body: any) => { access: string; refresh?: string }
  readonly withToken: (token: string) => Record<string, string>
  readonly page2: string
  readonly rows: (body: any) => any[]
  readonly total: (body: any) => number
  readonly renew?: (refresh: string) => Sent
  /** Whether a response refuses for want of a session. */
  readonly isUnauthenticated: (response: Received) => boolean
}

interface Sent {
  readonly path: string
  readonly method?: string
  readonly headers?: Record<string, string>
  readonly json?: unknown
}

interface Received {
  readonly status: number
  readonly text: string
  readonly body: any
}

const clients: Record<string, Client> = {
  drf: {
    start: drf.start,
    signIn: password => ({ path: '/api/token/', json: { username: 'user', password } }),
    tokens: ({ access, refresh }) => ({ access, refresh }),
    withToken: token => ({ authorization: `Bearer ${token}` }),
    page2: 'page=2&page_size=10',
    rows: ({ results }) => results,
    total: ({ count }) => count,
    renew: refresh => ({ path: '/api/token/refresh/', json: { refresh } }),
    isUnauthenticated: ({ status }) => status === 401
  }
}

async function send(backend: Backend, { path, method, headers, json }: Sent): Promise<Received> {
  const response = await fetch(`${backend.url}${path}`, {
    method: method ?? (json === undefined ? 'GET' : 'POST'),
    headers: { ...(json !== undefined && { 'content-type': 'application/json' }), ...headers },
    ...(json !== undefined && { body: JSON.stringify(json) })
  })
  const text = await response.text()
  const isJson = (response.headers.get('content-type') ?? '').includes('json')
  return { status: response.status, text, body: isJson ? JSON.parse(text) : undefined }
}

for (const [name, client] of Object.entries(clients)) {
  void tap.test(`${name}: signs in, lists, refuses a form, and ends sessions`, async t => {
    const backend = await client.start(t.teardown)
    const { family } = backend
    const wrong = await send(backend, client.signIn('wrong'))
    t.match(wrong.text, family.wrongPassword)
    const signedIn = await send(backend, client.signIn(users.user.password))
    const { access, refresh } = client.tokens(signedIn.body)
    const headers = client.withToken(access)

    const list = { path: `${family.list.path}?${client.page2}`, headers }
    const second = await send(backend, list)
    t.equal(client.total(second.body), itemCount)
    const { id, title } = family.list.fields
    t.match(client.rows(second.body)[0], { [id]: 11, [title]: 'Notice 11' })
    t.equal(client.rows(second.body).length, 10)
    t.equal(backend.calls.at(-1)?.username, 'user')

    const save = { path: family.save.path, method: family.save.method, headers }
    const refused = await send(backend, { ...save, json: family.save.body('') })
    t.match(refused.text, family.save.message)
    const saved = await send(backend, { ...save, json: family.save.body('New') })
    t.ok(saved.status === 200 || saved.status === 201)
    t.notMatch(saved.text, family.save.message)

    t.ok(client.isUnauthenticated(await send(backend, { ...list, headers: {} })))
    backend.expireTokens()
    t.ok(client.isUnauthenticated(await send(backend, list)))
    t.equal(refresh !== undefined, family.refreshes)
    if (client.renew !== undefined && refresh !== undefined) {
      const renewed = client.tokens((await send(backend, client.renew(refresh))).body)
      const again = await send(backend, { ...list, headers: client.withToken(renewed.access) })
      t.equal(again.text, second.text)
      backend.endAllSessions()
      const ended = await send(backend, client.renew(renewed.refresh ?? ''))
      t.ok(client.isUnauthenticated(ended))
    }
  })
}
