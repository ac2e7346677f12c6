/** Sign-in and sign-out of operators, for their page. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Static } from 'typebox'
import { clientAddress } from '../app/hooks/address.ts'
import { leavingOf } from '../app/hooks/leaving.ts'
import { malformed } from '../app/hooks/validation.ts'
import { GatewayError, toGatewayError } from '../errors/errors.ts'
import { createSecretId, type Identity, type NewSession } from '../session/types.ts'
import type { OperatorSession } from '../services/operator-sessions.ts'
import { addOpsScope } from '../ops/routes.ts'
import { secretOperator } from './operator.ts'
import type { OperatorCookie } from './operator-cookie.ts'
import { operatorSignInBody } from '../ops/schemas.ts'

type Credentials = Static<typeof operatorSignInBody>

interface VouchedOperator {
  readonly source: string
  readonly result: { readonly identity: Identity; readonly password?: string }
}

interface Options {
  /** Undefined without `ops.role`. */
  readonly sessions:
    | {
        readonly open: (secretId: string, opening: NewSession) => Promise<OperatorSession>
        readonly close: (secretId: string) => Promise<void>
      }
    | undefined
  /** @throws GatewayError */
  readonly vouch: (
    request: FastifyRequest,
    credentials: Credentials,
    leaving: AbortSignal
  ) => Promise<VouchedOperator>
  readonly cookie: OperatorCookie
  readonly log: { readonly info: (fields: object, message: string) => void }
}

const noRole =
  'Nobody can sign in here: ops.role is not set. Name the role of operators there, or use the ' +
  'operators’ secret.'

export type OperatorSignIn = ReturnType<typeof addOperatorSignIn>

export function addOperatorSignIn(ops: FastifyInstance, options: Options) {
  addOpsScope(ops, scope => {
    scope.post<{ Body: Credentials }>(
      '/sign-in',
      {
        config: { isOpen: true },
        schema: { summary: 'Signs an operator in, by a cookie.', body: operatorSignInBody },
        schemaErrorFormatter: malformed('Send {"username": "NAME", "password": "…"}.')
      },
      async (request, reply) => await signIn(options, request, reply, request.body)
    )
    const summary = 'Ends the session.'
    scope.post('/sign-out', { schema: { summary } }, async (request, reply) => {
      await signOut(options, request, reply)
      return { signedOut: true }
    })
    const ofMe = 'The operator of this request, and the end of the session.'
    scope.get('/me', { schema: { summary: ofMe } }, async ({ operator }) => ({ ...operator }))
  })
  return {
    /** Without `ops.role` nobody can sign in: says what to set. */
    problem: options.sessions === undefined ? noRole : undefined,
    /** By the form of a page. @throws GatewayError */
    signIn: async (request: FastifyRequest, reply: FastifyReply, credentials: Credentials) => {
      const fits: unknown = request.validateInput(credentials, operatorSignInBody)
      if (fits !== true) throw malformed('Give a user name and a password.')()
      await signIn(options, request, reply, credentials)
    },
    signOut: async (request: FastifyRequest, reply: FastifyReply) =>
      await signOut(options, request, reply)
  }
}

async function signOut(
  { sessions, cookie, log }: Options,
  request: FastifyRequest,
  reply: FastifyReply
): Promise<void> {
  const { operatorSession, operator = secretOperator } = request
  if (operatorSession === undefined) throw malformed('There is no session to end.')()
  await sessions?.close(operatorSession)
  const address = clientAddress(request)
  const entry = { act: 'ops.sign-out', operator, address, requestId: request.id }
  request.server.ledger?.append({ event: 'act.done', ...entry, details: {} })
  log.info({ event: 'ops.logout', user: operator.name, address }, 'operator signed out')
  reply.header('set-cookie', cookie.clear)
}

/** Sets the cookie. */
async function signIn(
  { sessions, vouch, cookie, log }: Options,
  request: FastifyRequest,
  reply: FastifyReply,
  credentials: Credentials
): Promise<object> {
  const { username } = credentials
  const address = clientAddress(request)
  if (sessions === undefined) {
    throw new GatewayError('ops.role', { message: noRole })
  }
  const operator = { name: username, via: 'session' } as const
  const entry = { act: 'ops.sign-in', operator, address, requestId: request.id }
  try {
    const { source, result } = await vouch(request, credentials, leavingOf(reply.raw).signal)
    const former = request.operatorSession
    // A new id for each sign-in: one that somebody planted in the browser opens nothing.
    const secretId = createSecretId({ source, id: result.identity.id })
    const { session, until } = await sessions.open(secretId, {
      identity: { ...result.identity, profile: {} },
      source,
      remembered: false,
      address,
      agent: (request.headers['user-agent'] ?? '').slice(0, 256),
      ...(result.password !== undefined && { password: result.password })
    })
    if (former !== undefined) await sessions.close(former)
    request.server.ledger?.append({ event: 'act.done', ...entry, details: { source } })
    log.info({ event: 'ops.login', user: username, source, address }, 'operator signed in')
    reply.header('set-cookie', cookie.give(secretId))
    return { name: session.identity.username, via: 'session', source, until }
  } catch (error) {
    const { code } = toGatewayError(error)
    request.server.ledger?.append({ event: 'act.failed', ...entry, details: {}, code })
    log.info({ event: 'ops.login.refused', user: username, address, code }, 'sign-in refused')
    throw error
  }
}
