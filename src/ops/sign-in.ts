/** Sign-in and sign-out of operators: by a password, the operators' secret, or a link. */
import { randomBytes } from 'node:crypto'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Static } from 'typebox'
import { addOpsScope } from './routes.ts'
import { operatorSignInBody } from './schemas.ts'
import { clientAddress } from '../app/hooks/address.ts'
import { leavingOf } from '../app/hooks/leaving.ts'
import { malformed } from '../app/hooks/validation.ts'
import { GatewayError, toGatewayError } from '../errors/errors.ts'
import type { Log } from '../services/services.ts'
import { localOperator, secretOperator } from './operator.ts'
import type { Entrant, OperatorSessions } from './session.ts'
import type { Vouching } from './vouching.ts'

type Credentials = Static<typeof operatorSignInBody>

interface Options {
  readonly sessions: OperatorSessions
  /** Of the config in force. */
  readonly vouching: () => Vouching
  /** Whether users sign in: `ops.role` is set. */
  readonly hasRole: boolean
  /** Compares with `ops.secret`; undefined where config sets none, so that nobody knows it. */
  readonly isSecret: ((text: string) => boolean) | undefined
  readonly log: Log
}

/** A link of `console-gateway ops` is good for this time. */
const linkMs = 120_000
const maxLinks = 100

export type OperatorSignIn = ReturnType<typeof addOperatorSignIn>

/** @param urlOf the address of a path of this listener, for people on this machine */
export function addOperatorSignIn(
  ops: FastifyInstance,
  options: Options,
  urlOf: (path: string) => string
) {
  const { sessions, vouching, hasRole, isSecret } = options
  const links = createLinks()
  const makeLink = (ms: number) => urlOf(`/ops/link/${links.make(ms)}`)

  const byPassword = async (request: FastifyRequest, reply: FastifyReply, by: Credentials) => {
    if (!hasRole) {
      throw new GatewayError('ops.role', {
        message: 'Nobody signs in by name here: ops.role is not set.'
      })
    }
    const leaving = leavingOf(reply.raw).signal
    const vouch = async () => await vouching().user(request, by, sessions.isOperator, leaving)
    return await signIn(options, reply, by.username, vouch)
  }

  addOpsScope(ops, scope => {
    scope.post<{ Body: Credentials }>(
      '/sign-in',
      {
        config: { isOpen: true },
        schema: { summary: 'Signs an operator in, by a cookie.', body: operatorSignInBody },
        schemaErrorFormatter: malformed('Send {"username": "NAME", "password": "…"}.')
      },
      async (request, reply) => await byPassword(request, reply, request.body)
    )
    const ofSignOut = 'Ends the sessions of this operator.'
    scope.post('/sign-out', { schema: { summary: ofSignOut } }, async (request, reply) => {
      await signOut(options, request, reply)
      return { signedOut: true }
    })
    const ofMe = 'The operator of this request, and the end of the session.'
    scope.get('/me', { schema: { summary: ofMe } }, async ({ operator }) => ({ ...operator }))
    const ofLink = 'A link that opens the page once, within two minutes.'
    scope.post('/link', { schema: { summary: ofLink } }, async ({ operator }) => {
      // Else whoever is an operator for an hour could stay one.
      if (operator?.via === 'session') throw new GatewayError('ops.secret')
      return { url: makeLink(linkMs) }
    })
  })

  return {
    /** What the form asks for. */
    form: hasRole ? ('password' as const) : isSecret && ('secret' as const),
    makeLink,
    /** By the form of a page. @throws GatewayError */
    byForm: async (request: FastifyRequest, reply: FastifyReply, form: URLSearchParams) => {
      const secret = form.get('secret')
      if (secret === null) {
        const [username, password] = [form.get('username') ?? '', form.get('password') ?? '']
        const fits: unknown = request.validateInput({ username, password }, operatorSignInBody)
        if (fits !== true) throw malformed('Give a user name and a password.')()
        return await byPassword(request, reply, { username, password })
      }
      const { name } = secretOperator
      return await signIn(options, reply, name, async () => {
        const isRight = !hasRole && isSecret?.(secret) === true
        await vouching().secret(request, isRight, leavingOf(reply.raw).signal)
        return nameless(name)
      })
    },
    /** @returns whether the link is good, which it is no more after this */
    byLink: async (reply: FastifyReply, token: string): Promise<boolean> => {
      if (!links.take(token)) return false
      const { name } = localOperator
      await signIn(options, reply, name, async () => nameless(name))
      return true
    },
    signOut: async (request: FastifyRequest, reply: FastifyReply) =>
      await signOut(options, request, reply)
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
): Promise<object> {
  const { request } = reply
  const { ledger } = request.server
  const address = clientAddress(request)
  const by = { name, via: 'session' } as const
  const entry = { act: 'ops.sign-in', operator: by, address, requestId: request.id }
  try {
    const { operator, setCookie } = await sessions.open(await enter())
    const { source } = operator
    ledger?.append({ event: 'act.done', ...entry, details: { source } })
    log.info({ event: 'ops.login', user: name, source, address }, 'operator signed in')
    reply.header('set-cookie', setCookie)
    return operator
  } catch (error) {
    const { code } = toGatewayError(error)
    ledger?.append({ event: 'act.failed', ...entry, details: {}, code })
    log.info({ event: 'ops.login.refused', user: name, address, code }, 'sign-in refused')
    throw error
  }
}

async function signOut(
  { sessions, log }: Options,
  request: FastifyRequest,
  reply: FastifyReply
): Promise<void> {
  const { operator } = request
  if (operator?.via !== 'session') throw malformed('There is no session to end.')()
  const { setCookie } = await sessions.close(operator)
  const address = clientAddress(request)
  const entry = { act: 'ops.sign-out', operator, address, requestId: request.id }
  request.server.ledger?.append({ event: 'act.done', ...entry, details: {} })
  log.info({ event: 'ops.logout', user: operator.name, address }, 'operator signed out')
  reply.header('set-cookie', setCookie)
}
