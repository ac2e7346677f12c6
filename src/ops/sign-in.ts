/** Sign-in and sign-out of operators: by a password, a provider, the operators' secret, or a link. */
import { randomBytes } from 'node:crypto'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { LRUCache } from 'lru-cache'
import { isSame } from './access.ts'
import { addRoute, doAct } from './routes.ts'
import { clientAddress, originOf } from '../app/hooks/address.ts'
import { leavingOf } from '../app/hooks/sending.ts'
import type { Flows } from '../app/sign-in/flows.ts'
import type { GatewayConfig } from '../config/schema/gateway.ts'
import { GatewayError, malformed, reasonOf, toGatewayError } from '../errors/errors.ts'
import type { OidcSource } from '../login/oidc/source.ts'
import type { Log } from '../services/services.ts'
import { localOperator, secretOperator } from './operator.ts'
import { object, text } from './schemas.ts'
import type { Entrant, OperatorSessions, Vouching } from './session.ts'

interface Options {
  readonly sessions: OperatorSessions
  readonly vouching: () => Vouching
  readonly flows: Flows
  /** With a role users sign in, else whoever has the secret. */
  readonly ops: Pick<GatewayConfig['ops'], 'role' | 'secret'>
  /** For people on this machine. */
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
  const { role, secret } = options.ops
  const { takesPasswords, providers } = options.vouching()
  const nameless = secret === undefined ? undefined : ('secret' as const)
  const byName = takesPasswords ? ('password' as const) : undefined
  const links = new LRUCache<string, true>({ max: maxLinks })
  const makeLink = (ms: number) => {
    const token = randomBytes(24).toString('base64url')
    // For the library 0 is no end.
    if (ms > 0) links.set(token, true, { ttl: ms })
    return options.urlOf(`/ops/link/${token}`)
  }

  addRoute(ops, '/me', 'The operator of this request, and the end of the session.', {
    answer: object({}),
    run: (_asked, { operator }) => ({ ...operator })
  })
  addRoute(ops, '/link', 'Makes a link that opens the page once, within two minutes.', {
    kind: 'ops.link',
    answer: object({ url: text() }),
    secret: 'url',
    run: async (_body, { operator }) => {
      // Else whoever is an operator for an hour could stay one.
      if (operator?.via === 'session') throw new GatewayError('ops.secret')
      return { url: makeLink(linkMs) }
    }
  })

  return {
    form: role === undefined ? nameless : byName,
    providers: role === undefined ? [] : providers.map(each => providerFor(options, each)),
    makeLink,
    byForm: (reply: FastifyReply, form: URLSearchParams): Promise<void> => {
      const typed = form.get('secret')
      return typed === null ? byPassword(options, reply, form) : bySecret(options, reply, typed)
    },
    /** @returns whether the link is good, which it is no more after this */
    byLink: async (reply: FastifyReply, token: string): Promise<boolean> => {
      const isGood = links.has(token) && links.delete(token)
      if (isGood) await signIn(options, reply, localOperator.name, async () => localOperator)
      return isGood
    },
    signOut: async (reply: FastifyReply): Promise<void> => {
      const { request } = reply
      const { operator } = request
      if (operator?.via !== 'session') throw malformed('There is no session to end.')
      const run = async () => {
        reply.header('set-cookie', await options.sessions.close(operator))
        return {}
      }
      await doAct({ kind: 'ops.sign-out', run }, {}, request)
    }
  }
}

async function byPassword(options: Options, reply: FastifyReply, form: URLSearchParams) {
  const { vouching, sessions, ops } = options
  const [username, password] = [form.get('username') ?? '', form.get('password') ?? '']
  const isShort = username.length <= maxName && password.length <= maxPassword
  if (username === '' || password === '' || !isShort) {
    throw malformed('Give a user name and a password.')
  }
  if (ops.role === undefined) {
    const message = 'Nobody signs in by name here: ops.role is not set.'
    throw new GatewayError('ops.role', { message })
  }
  const typed = { username, password }
  const leaving = leavingOf(reply.raw).signal
  await signIn(options, reply, username, async () => {
    return await vouching().user(reply.request, typed, sessions.isOperator, leaving)
  })
}

async function bySecret(options: Options, reply: FastifyReply, secret: string): Promise<void> {
  const { vouching, ops } = options
  const { role, secret: ofConfig } = ops
  await signIn(options, reply, secretOperator.name, async () => {
    const isRight = role === undefined && isSame(secret, ofConfig)
    await vouching().secret(reply.request, isRight, leavingOf(reply.raw).signal)
    return secretOperator
  })
}

function providerFor(options: Options, source: OidcSource) {
  const { flows, sessions } = options
  const { name } = source
  const path = `/ops/sign-in/${name}`
  return {
    name,
    /** Where it begins. The provider knows `/callback` below it. */
    path,
    /** @returns where the browser goes, and in the end to `landing`. @throws GatewayError */
    begin: async (reply: FastifyReply, landing: string): Promise<string> => {
      const { request } = reply
      const protocol = sessions.isSecure ? 'https' : request.protocol
      const redirectUri = `${originOf(protocol, request.host)}${path}/callback`
      // It asks for the password, so that nobody whom it knows still gets in by one click.
      return await flows
        .begin(reply, source, { redirectUri, landing }, true)
        .catch(error => refuse(options, request, error))
    },
    /** @returns where to go on. @throws GatewayError */
    finish: async (reply: FastifyReply): Promise<string | undefined> => {
      const { request } = reply
      const { landing, vouched } = await flows
        .finish(request, source, request.operator?.source === name)
        .catch(error => refuse(options, request, error))
      if (vouched === undefined) return landing
      // Its tokens are dropped. To revoke them may end the user's session at the console too, which
      // can be of the same grant (RFC 7009 §2.1).
      const { identity } = vouched
      const entrant = { name: identity.username, user: { identity, source: name } }
      await signIn(options, reply, entrant.name, async () => {
        if (!(await sessions.isOperator(entrant))) throw new GatewayError('ops.role')
        return entrant
      })
      return landing
    }
  }
}

async function signIn(
  options: Options,
  reply: FastifyReply,
  name: string,
  enter: () => Promise<Entrant>
): Promise<void> {
  const { sessions } = options
  const { request } = reply
  const run = async () => {
    const entrant = await enter()
    reply.header('set-cookie', await sessions.open(entrant))
    return { source: entrant.user?.source }
  }
  try {
    const act = { kind: 'ops.sign-in', run }
    await doAct(act, {}, request, { name, via: 'session' })
  } catch (error) {
    refuse(options, request, error, name)
  }
}

function refuse({ log }: Options, request: FastifyRequest, error: unknown, user?: string): never {
  const { code, cause } = toGatewayError(error)
  const fields = { user, address: clientAddress(request), code, reason: cause && reasonOf(cause) }
  log.info({ event: 'ops.login.refused', ...fields }, 'sign-in refused')
  throw error
}
