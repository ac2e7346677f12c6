/** An HTTP server that plays the back-ends a company already has: own sign-in, own words, own way to say no. It believes `x-user-*` fields, so only the gateway may reach it. */
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
  type ServerResponse
} from 'node:http'
import type { AddressInfo } from 'node:net'
import { createCallers } from './callers.ts'
import {
  accounts,
  exampleNotices,
  exampleOrders,
  examplePassword,
  personOf,
  type Caller,
  type Order
} from './data.ts'

export interface BackendOptions {
  /** 127.0.0.1 without it. */
  readonly host?: string
  /** 9001 without it; 0 takes any free one. */
  readonly port?: number
  /** How long a token lasts; an hour without it. */
  readonly tokenSeconds?: number
}

export interface Backend {
  readonly server: Server
  /** Resolves with the URL, without a slash at its end. */
  listen(): Promise<string>
  /** Lets running requests end, for two seconds at most. */
  close(): Promise<void>
}

interface Answer {
  readonly status: number
  readonly body: Readonly<Record<string, unknown>>
  /** Whether the rest of the request is not worth reading. */
  readonly hangUp?: boolean
}

type Members = Readonly<Record<string, unknown>>

interface Asked {
  readonly headers: IncomingHttpHeaders
  readonly caller: Caller
  readonly body: Members
}

interface Route {
  /** Whether anybody may ask. */
  readonly isOpen?: true
  readonly takesJson?: true
  readonly run: (asked: Asked) => Answer
}

const maxBody = 64 * 1024
const maxOrders = 1000

const nobody: Caller = { uid: '', loginName: '', roles: [] }
const refuse = (status: number, msg: string): Answer => ({ status, body: { code: status, msg } })
const result = (value: unknown): Answer => ({ status: 200, body: { code: 200, result: value } })

export function createBackend({
  host = '127.0.0.1',
  port = 9001,
  tokenSeconds = 3600
}: BackendOptions = {}): Backend {
  const callers = createCallers(tokenSeconds)
  const notices = exampleNotices(Date.now())
  const orders = exampleOrders(Date.now())
  let lastOrder = 10_427

  const signIn = ({ body: { login, secret } }: Asked): Answer => {
    const account = accounts.find(({ loginName }) => loginName === login)
    // The habit that a gateway has to know: no is said with status 200.
    if (account === undefined || secret !== examplePassword) {
      return { status: 200, body: { code: 401, msg: 'bad credentials' } }
    }
    const { uid, loginName, displayName, roles } = account
    const token = callers.issue({ uid, loginName, roles })
    return {
      status: 200,
      body: {
        code: 200,
        msg: 'success',
        result: { token, expiresIn: tokenSeconds, user: { uid, loginName, displayName, roles } }
      }
    }
  }

  const signOut = ({ headers }: Asked): Answer => {
    callers.forget(headers)
    return { status: 200, body: { code: 200 } }
  }

  const placeOrder = ({ body: { customer, amount } }: Asked): Answer => {
    if (typeof customer !== 'string' || customer.trim() === '' || customer.length > 200) {
      return refuse(400, 'customer is a text of 1 to 200 characters')
    }
    if (typeof amount !== 'number' || !(amount > 0 && amount <= 1e9)) {
      return refuse(400, 'amount is a number above 0')
    }
    const order: Order = {
      orderNo: `SO-${++lastOrder}`,
      customer: customer.trim(),
      amount,
      currency: 'EUR',
      state: 'new',
      placedAt: new Date().toISOString()
    }
    orders.unshift(order)
    if (orders.length > maxOrders) orders.pop()
    return { status: 201, body: { code: 201, result: order } }
  }

  const routes = new Map<string, Route>([
    ['GET /healthz', { isOpen: true, run: () => ({ status: 200, body: { status: 'UP' } }) }],
    [
      'GET /public/status',
      { isOpen: true, run: () => ({ status: 200, body: { status: 'open', version: '2.3.1' } }) }
    ],
    ['POST /auth/login', { isOpen: true, takesJson: true, run: signIn }],
    ['POST /auth/logout', { isOpen: true, run: signOut }],
    ['GET /accounts/me', { run: ({ caller }) => result(personOf(caller)) }],
    ['GET /notices/list', { run: () => result({ list: notices, count: notices.length }) }],
    [
      'GET /notices/unread',
      { run: () => result({ count: notices.filter(({ isRead }) => !isRead).length }) }
    ],
    ['GET /orders', { run: () => result({ rows: orders, total: orders.length }) }],
    ['POST /orders', { takesJson: true, run: placeOrder }]
  ])

  const answer = async (request: IncomingMessage): Promise<Answer> => {
    const method = request.method === 'HEAD' ? 'GET' : (request.method ?? '')
    const route = routes.get(`${method} ${(request.url ?? '').split('?', 1)[0] ?? ''}`)
    if (route === undefined) return refuse(404, 'not found')
    const caller = route.isOpen === true ? nobody : callers.find(request.headers)
    if (caller === undefined) return refuse(401, 'who are you?')
    const asked = { headers: request.headers, caller }
    if (route.takesJson !== true) return route.run({ ...asked, body: {} })
    const bytes = await readBody(request)
    if (!Buffer.isBuffer(bytes)) return { ...refuse(413, 'too large'), hangUp: bytes === 'endless' }
    const body = parseMembers(bytes)
    return body === undefined ? refuse(400, 'bad json') : route.run({ ...asked, body })
  }

  const server = createServer({ requestTimeout: 30_000 }, (request, response) => {
    response.on('error', () => {})
    void answer(request)
      .catch(() => refuse(500, 'internal error'))
      .then(given => send(response, given))
  })

  return {
    server,
    listen: () =>
      new Promise((resolve, reject) => {
        server.once('error', reject)
        server.listen(port, host, () => {
          server.off('error', reject)
          const { address, port: taken, family } = server.address() as AddressInfo
          resolve(`http://${family === 'IPv6' ? `[${address}]` : address}:${taken}`)
        })
      }),
    close: () =>
      new Promise(resolve => {
        const deadline = setTimeout(() => server.closeAllConnections(), 2000)
        server.close(() => {
          clearTimeout(deadline)
          resolve()
        })
      })
  }
}

function send(response: ServerResponse, { status, body, hangUp }: Answer): void {
  const text = JSON.stringify(body)
  response.writeHead(status, {
    'content-type': 'application/json; charset=utf-8',
    'content-length': Buffer.byteLength(text),
    'cache-control': 'no-store',
    'x-powered-by': 'BackOffice/2.3',
    ...(hangUp === true && { connection: 'close' })
  })
  response.end(text)
}

/** A body somewhat too large is read to its end, so that its sender hears the answer; a huge one is not. */
function readBody(request: IncomingMessage): Promise<Buffer | 'too large' | 'endless'> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let size = 0
    request.on('data', (chunk: Buffer) => {
      size += chunk.length
      if (size <= maxBody) chunks.push(chunk)
      else chunks.length = 0
      if (size > 16 * maxBody) resolve('endless')
    })
    request.on('end', () => resolve(size > maxBody ? 'too large' : Buffer.concat(chunks)))
    request.on('error', reject)
  })
}

function parseMembers(bytes: Buffer): Members | undefined {
  try {
    const value: unknown = JSON.parse(bytes.toString('utf8'))
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? { ...value }
      : undefined
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
    process.once(signal, () => {
      void backend.close()
    })
  }
  try {
    console.log(`example back-end listens on ${await backend.listen()}`)
  } catch (error) {
    console.error(
      `example back-end cannot listen: ${error instanceof Error ? error.message : String(error)}`
    )
    process.exitCode = 1
  }
}
