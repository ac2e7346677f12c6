/**
 * Plays the back-end that a company already has: own sign-in, own words, own way to say no. It
 * believes `x-user-*` fields, so only the gateway may reach it.
 */
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'

interface Caller {
  readonly uid: string
  readonly loginName: string
  readonly roles: readonly string[]
}

interface Answer {
  readonly status: number
  readonly body: Readonly<Record<string, unknown>>
}

interface Asked {
  readonly headers: IncomingHttpHeaders
  readonly caller: Caller
  readonly body: Readonly<Record<string, unknown>>
}

interface Route {
  /** Whether anybody may ask. */
  readonly isOpen?: true
  readonly run: (asked: Asked) => Answer
}

const maxBody = 64 * 1024
const maxTokens = 1000
const tokenSeconds = 3600
/** The password of both accounts: an example has no secrets. */
const password = 'ant.design'

const accounts = [
  { uid: '1003', loginName: 'carol', displayName: 'Carol Chen', roles: ['user'] },
  { uid: '1004', loginName: 'dora', displayName: 'Dora Diaz', roles: ['admin'] }
]
const nobody: Caller = { uid: '', loginName: '', roles: [] }

const refuse = (status: number, msg: string): Answer => ({ status, body: { code: status, msg } })
const result = (value: unknown): Answer => ({ status: 200, body: { code: 200, result: value } })
const minutesAgo = (minutes: number) => new Date(Date.now() - minutes * 60_000).toISOString()

/** @param options port: 9001 without it; 0 takes any free one */
export function createBackend({ host = '127.0.0.1', port = 9001 } = {}) {
  const routes = createRoutes()

  async function answer(request: IncomingMessage): Promise<Answer> {
    const method = request.method === 'HEAD' ? 'GET' : (request.method ?? '')
    const route = routes.find(`${method} ${(request.url ?? '').split('?', 1)[0]}`)
    if (route === undefined) return refuse(404, 'not found')
    const { headers } = request
    const caller = route.isOpen === true ? nobody : routes.callerOf(headers)
    if (caller === undefined) return refuse(401, 'who are you?')
    const body = method === 'GET' ? {} : await readMembers(request)
    return body === undefined ? refuse(400, 'bad json') : route.run({ headers, caller, body })
  }

  const server = createServer((request, response) => {
    response.on('error', () => {})
    void answer(request)
      .catch(() => refuse(500, 'internal error'))
      .then(({ status, body }) => {
        response.writeHead(status, { 'content-type': 'application/json; charset=utf-8' })
        response.end(JSON.stringify(body))
      })
  })

  return {
    server,
    /** @returns the URL, without a slash at its end */
    listen: async () => {
      await once(server.listen(port, host), 'listening')
      return `http://${host}:${(server.address() as AddressInfo).port}`
    },
    /** Lets running requests end, for two seconds at most. */
    close: () =>
      new Promise<void>(resolve => {
        server.close(() => resolve())
        setTimeout(() => server.closeAllConnections(), 2000).unref()
      })
  }
}

function createRoutes() {
  const tokens = new Map<string, Caller>()
  const notices = exampleNotices()
  const orders = exampleOrders()
  let lastOrder = 10_427

  const tokenOf = ({ authorization = '' }: IncomingHttpHeaders) =>
    /^Bearer +([\w-]+)$/i.exec(authorization)?.[1] ?? ''

  const signIn = ({ body: { login, secret } }: Asked): Answer => {
    const account = accounts.find(({ loginName }) => loginName === login)
    // The habit that a gateway has to know: no is said with status 200.
    if (account === undefined || secret !== password) {
      return { status: 200, body: { code: 401, msg: 'bad credentials' } }
    }
    const token = randomBytes(24).toString('base64url')
    if (tokens.size >= maxTokens) tokens.delete(tokens.keys().next().value ?? '')
    tokens.set(token, account)
    const value = { token, expiresIn: tokenSeconds, user: account }
    return { status: 200, body: { code: 200, msg: 'success', result: value } }
  }

  const signOut = ({ headers }: Asked): Answer => {
    tokens.delete(tokenOf(headers))
    return { status: 200, body: { code: 200 } }
  }

  const placeOrder = ({ body: { customer, amount } }: Asked): Answer => {
    if (typeof customer !== 'string' || customer.trim() === '' || customer.length > 200) {
      return refuse(400, 'customer is a text of 1 to 200 characters')
    }
    if (typeof amount !== 'number' || !(amount > 0 && amount <= 1e9)) {
      return refuse(400, 'amount is a number above 0')
    }
    const order = {
      orderNo: `SO-${++lastOrder}`,
      customer: customer.trim(),
      amount,
      currency: 'EUR',
      state: 'new',
      placedAt: minutesAgo(0)
    }
    orders.unshift(order)
    return { status: 201, body: { code: 201, result: order } }
  }

  const routes: Readonly<Record<string, Route>> = {
    'GET /healthz': { isOpen: true, run: () => ({ status: 200, body: { status: 'UP' } }) },
    'GET /public/status': {
      isOpen: true,
      run: () => ({ status: 200, body: { status: 'open', version: '2.3.1' } })
    },
    'POST /auth/login': { isOpen: true, run: signIn },
    'POST /auth/logout': { isOpen: true, run: signOut },
    'GET /accounts/me': { run: ({ caller }) => result(personOf(caller)) },
    'GET /notices/list': { run: () => result({ list: notices, count: notices.length }) },
    'GET /notices/unread': {
      run: () => result({ count: notices.filter(({ isRead }) => !isRead).length })
    },
    'GET /orders': { run: () => result({ rows: orders, total: orders.length }) },
    'POST /orders': { run: placeOrder }
  }

  return {
    find: (name: string) => (Object.hasOwn(routes, name) ? routes[name] : undefined),
    /** Somebody for whom the gateway vouches, or the holder of a token. */
    callerOf: (headers: IncomingHttpHeaders): Caller | undefined => {
      const [uid = '', name = '', roles = ''] = ['id', 'name', 'roles'].map(field =>
        decodeURIComponent(String(headers[`x-user-${field}`] ?? ''))
      )
      return uid === ''
        ? tokens.get(tokenOf(headers))
        : { uid, loginName: name || uid, roles: roles.split(',').map(role => role.trim()) }
    }
  }
}

/** Whom only the gateway knows (from its users file) gets a plain record. */
function personOf({ uid, loginName, roles }: Caller) {
  const account = accounts.find(each => each.uid === uid && each.loginName === loginName)
  const isAdmin = roles.includes('admin')
  return {
    uid,
    loginName,
    displayName: account?.displayName ?? loginName.charAt(0).toUpperCase() + loginName.slice(1),
    mail: `${loginName.toLowerCase().replaceAll(/[^a-z0-9._-]/g, '')}@example.com`,
    avatarUrl: '',
    roleName: isAdmin ? 'Admin' : 'User',
    jobTitle: isAdmin ? 'Administrator' : 'Team member',
    team: account === undefined ? 'Head office' : 'Customer care'
  }
}

function exampleNotices() {
  const rows: ReadonlyArray<readonly [number, string, number, boolean, string, string]> = [
    [2048, 'message', 6, false, 'Li Wei replied to your comment', 'The refund went out today.'],
    [2047, 'notification', 42, false, 'Three new orders are waiting', 'Please look at them.'],
    [2046, 'event', 180, false, 'Maintenance of the order archive', 'Tonight, 22:00 to 23:30.'],
    [2041, 'notification', 420, false, 'Weekly report is ready', 'Sales are up 4 %.'],
    [2038, 'message', 1560, true, 'Mia Novak mentioned you', '“Is the address right?”'],
    [2035, 'event', 2880, true, 'Code review of the billing import', 'Bruno has begun.'],
    [2027, 'notification', 7200, true, 'Your password changes in 14 days', 'We will remind you.'],
    [1990, 'event', 23_040, true, 'Stocktaking in Hamburg', 'Finished without differences.']
  ]
  return rows.map(([number, kind, age, isRead, subject, body]) => ({
    noticeId: `N-${number}`,
    subject,
    body,
    createdAt: minutesAgo(age),
    kind,
    isRead,
    icon: '',
    tag: '',
    state: ''
  }))
}

function exampleOrders() {
  const rows: ReadonlyArray<readonly [string, string, number, string, string, number]> = [
    ['SO-10427', 'Northwind Traders', 1249.5, 'EUR', 'new', 35],
    ['SO-10426', 'Contoso Ltd', 318, 'USD', 'new', 120],
    ['SO-10425', 'Fabrikam GmbH', 7420.9, 'EUR', 'paid', 540],
    ['SO-10424', 'Wide World Importers', 86.25, 'GBP', 'shipped', 1440]
  ]
  return rows.map(([orderNo, customer, amount, currency, state, age]) => {
    return { orderNo, customer, amount, currency, state, placedAt: minutesAgo(age) }
  })
}

/** @returns undefined for what is no object of JSON */
async function readMembers(request: IncomingMessage): Promise<Asked['body'] | undefined> {
  let text = ''
  for await (const chunk of request.setEncoding('utf8')) {
    if (text.length + String(chunk).length > maxBody) return undefined
    text += String(chunk)
  }
  try {
    const value: unknown = text === '' ? {} : JSON.parse(text)
    return typeof value === 'object' && value !== null ? { ...value } : undefined
  } catch {
    return undefined
  }
}

if (import.meta.main) {
  const backend = createBackend({
    host: process.env['HOST'] || '127.0.0.1',
    port: Number(process.env['PORT'] || 9001)
  })
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.once(signal, () => void backend.close())
  }
  console.log(`example back-end listens on ${await backend.listen()}`)
}
