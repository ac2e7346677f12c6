/** Sign-in and sign-out of operators: by a password, the operators' secret, or a link. */
import { randomBytes } from 'node:crypto'
import type { FastifyInstance, FastifyReply } from 'fastify'
import { actLine } from './act-ledger.ts'
import { addRoute } from './routes.ts'
import { clientAddress } from '../app/hooks/address.ts'
import { leavingOf } from '../app/hooks/sending.ts'
import { malformed } from '../app/hooks/validation.ts'
import { GatewayError, toGatewayError } from '../errors/errors.ts'
import type { AuditEntry } from '../observability/audit/line.ts'
import type { Log } from '../services/services.ts'
import { localOperator, type Operator, secretOperator } from './operator.ts'
import type { Entrant, OperatorSessions } from './session.ts'
import type { Vouching } from './vouching.ts'

interface Options {
  readonly sessions: OperatorSessions
  /** Of the config in force. */
  readonly vouching: () => Vouching
  /** Whether users sign in: `ops.role` is set. */
  readonly hasRole: boolean
  /** Compares with `ops.secret`; undefined where config sets none, so that nobody knows it. */
  readonly isSecret: ((text: string) => boolean) | undefined
  /** The address of a path of this listener, for people on this machine. */
  readonly urlOf: (path: string) => string
  readonly log: Log
}

/** A link of `console-gateway ops` is good for this time. */
const linkMs = 120_000
const maxLinks = 100
const maxName = 255
const maxPassword = 1024

export type OperatorSignIn = ReturnType<typeof addOperatorSignIn>

export function addOperatorSignIn(ops: FastifyInstance, options: Options) {
  const { sessions, vouching, hasRole, isSecret, urlOf } = options
  const links = createLinks()
  const makeLink = (ms: number) => urlOf(`/ops/link/${links.make(ms)}`)

  const byPassword = async (reply: FastifyReply, username: string, password: string) => {
    const isShort = username.length <= maxName && password.length <= maxPassword
    if (username === '' || password === '' || !isShort) {
      throw malformed('Give a user name and a password.')()
    }
    if (!hasRole) {
      const message = 'Nobody signs in by name here: ops.role is not set.'
      throw new GatewayError('ops.role', { message })
    }
    const leaving = leavingOf(reply.raw).signal
    const by = { username, password }
    await signIn(options, reply, username, async () => {
      return await vouching().user(reply.request, by, sessions.isOperator, leaving)
    })
  }

  const bySecret = async (reply: FastifyReply, secret: string) => {
    const { name } = secretOperator
    await signIn(options, reply, name, async () => {
      const isRight = !hasRole && isSecret?.(secret) === true
      await vouching().secret(reply.request, isRight, leavingOf(reply.raw).signal)
      return nameless(name)
    })
  }

  const ofMe = { path: '/me', summary: 'The operator of this request, and the end of the session.' }
  addRoute(ops, 'GET', ofMe, async ({ operator }) => ({ ...operator }))
  const ofLink = { path: '/link', summary: 'A link that opens the page once, within two minutes.' }
  addRoute(ops, 'POST', ofLink, async ({ operator }) => {
    // Else whoever is an operator for an hour could stay one.
    if (operator?.via === 'session') throw new GatewayError('ops.secret')
    return { url: makeLink(linkMs) }
  })

  return {
    /** What the form asks for. */
    form: hasRole ? ('password' as const) : isSecret && ('secret' as const),
    makeLink,
    /** By the form of a page. @throws GatewayError */
    byForm: async (reply: FastifyReply, form: URLSearchParams): Promise<void> => {
      const secret = form.get('secret')
      if (secret !== null) return await bySecret(reply, secret)
      await byPassword(reply, form.get('username') ?? '', form.get('password') ?? '')
    },
    /** @returns whether the link is good, which it is no more after this */
    byLink: async (reply: FastifyReply, token: string): Promise<boolean> => {
      if (!links.take(token)) return false
      const { name } = localOperator
      await signIn(options, reply, name, async () => nameless(name))
      return true
    },
    signOut: async (reply: FastifyReply) => await signOut(options, reply)
  }
}

/** Tokens that are good once, with their ends by a monotonic clock. */
function createLinks() {
  const ends = new Map<string, number>()
  return {
    make: (ms: number): string => {
      const token = randomBytes(24).toString('base64url')
      ends.set(token, performance.now() + ms)
      const [oldest = ''] = ends.keys()
      if (ends.size > maxLinks) ends.delete(oldest)
      return token
    },
    take: (token: string): boolean => {
      const end = ends.get(token) ?? -Infinity
      ends.delete(token)
      return performance.now() < end
    }
  }
}

/** Somebody with the secret or a link, of whom no more is known. */
function nameless(name: string): Entrant {
  return { identity: { id: name, username: name, name, roles: [], profile: {} } }
}

/** Sets the cookie. @param enter @throws GatewayError for whoever may not */
async function signIn(
  { sessions, log }: Options,
  reply: FastifyReply,
  name: string,
  enter: () => Promise<Entrant>
): Promise<void> {
  const { request } = reply
  const address = clientAddress(request)
  const by: Operator = { name, via: 'session' }
  const append = (fields: Pick<AuditEntry, 'outcome' | 'code' | 'detail'>) =>
    request.server.actLedger?.ledger.append({ ...actLine(request, 'ops.sign-in', by), ...fields })
  try {
    const { operator, setCookie } = await sessions.open(await enter())
    const { source } = operator
    append({ outcome: 'done', detail: { source } })
    log.info({ event: 'ops.login', user: name, source, address }, 'operator signed in')
    reply.header('set-cookie', setCookie)
  } catch (error) {
    const { code } = toGatewayError(error)
    append({ outcome: 'failed', code })
    log.info({ event: 'ops.login.refused', user: name, address, code }, 'sign-in refused')
    throw error
  }
}

async function signOut({ sessions, log }: Options, reply: FastifyReply): Promise<void> {
  const { request } = reply
  const { operator } = request
  if (operator?.via !== 'session') throw malformed('There is no session to end.')()
  const { setCookie } = await sessions.close(operator)
  const address = clientAddress(request)
  const line = { ...actLine(request, 'ops.sign-out', operator), outcome: 'done' } as const
  request.server.actLedger?.ledger.append(line)
  log.info({ event: 'ops.logout', user: operator.name, address }, 'operator signed out')
  reply.header('set-cookie', setCookie)
}
