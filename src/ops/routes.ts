/** The operators' API. `/ops/api/openapi.json` describes it by the schemas of its routes. */
import swagger from '@fastify/swagger'
import type { FastifyError, FastifyInstance, FastifyRequest, FastifySchema } from 'fastify'
import { type Static, type TSchema, Type } from 'typebox'
import { clientAddress } from '../app/hooks/address.ts'
import type { Config } from '../config/schema/config.ts'
import { GatewayError, malformed, toGatewayError } from '../errors/errors.ts'
import { isRecord } from '../json/values.ts'
import type { AuditEntry } from '../observability/audit/line.ts'
import type { GatewayState } from '../services/gateway-state.ts'
import type { Present } from '../services/present.ts'
import type { Services } from '../services/services.ts'
import type { Session } from '../session/types.ts'
import { type Operator, secretOperator } from './operator.ts'
import type { PlanAnswer, ReloadAnswer, ReplicasStatus } from './state-schemas.ts'

const prefix = '/ops/api'
/**
 * Acts that go on where the ledger cannot be written, while their lines wait: a full disk must not
 * keep in who signed in with a stolen password.
 */
const protectiveActs = new Set([
  'sessions.close',
  'users.block',
  'keys.revoke',
  'ops.link',
  'ops.sign-in',
  'ops.sign-out'
])

const maxText = 512

export interface Desk extends Services {
  readonly config: () => Config
  readonly state: () => GatewayState
  readonly present: Present
  readonly replicas: () => Promise<ReplicasStatus>
  readonly plan: () => Promise<PlanAnswer>
  /** @param isConfirmed that most sessions of file users may end */
  readonly reload: (isConfirmed: boolean, operator: Operator | undefined) => Promise<ReloadAnswer>
  /** Signs sessions that have ended out at their back-ends; not awaited. */
  readonly signOut: (ended: readonly Session[]) => void
}

interface Route<A extends TSchema, T extends TSchema> {
  /** Names an act in the ledger, such as `sessions.close`: it is a POST. The others only read. */
  readonly kind?: string
  /** The query of a GET, or the body. */
  readonly takes?: T
  readonly answer: A
  /** The member of the answer that the ledger must not have. */
  readonly secret?: string
  readonly run: (
    fields: Static<T>,
    request: FastifyRequest
  ) => (Static<A> & object) | Promise<Static<A> & object>
}

type Act = Route<TSchema, TSchema> & Readonly<Record<'kind' | 'summary', string>>

declare module 'fastify' {
  interface FastifySchema {
    summary?: string
  }
  interface FastifyInstance {
    acts: Map<string, Act>
    actsTo: Pick<Services, 'ledger' | 'log'>
  }
}

/** Adds a route in a plugin of its own: only those that are added so are described. */
export function addRoute<A extends TSchema, T extends TSchema>(
  ops: FastifyInstance,
  path: string,
  summary: string,
  route: Route<A, T>
): void {
  const { kind, takes, answer, run } = route
  const act = kind === undefined ? undefined : ({ ...route, summary, kind } as unknown as Act)
  if (act !== undefined) ops.acts.set(path, act)
  const [method, place] = act === undefined ? ['GET', 'querystring'] : ['POST', 'body']
  const ofFields = takes && { [place]: takes }
  const schema: FastifySchema = { summary, ...ofFields, response: { 200: answer } }
  ops.register(async scope => {
    scope.route({
      method,
      url: prefix + path,
      schema,
      schemaErrorFormatter: misfits => refusalOf(misfits, takes),
      preValidation: async request => {
        // A command without parameters sends no body.
        if (!isRecord(request.body)) request.body = {}
      },
      handler: async request =>
        act === undefined
          ? await run(request.query as Static<T>, request)
          : await doAct(act, request.body as object, request)
    })
  })
}

type Misfits = NonNullable<FastifyError['validation']>

/** Names the first member that does not fit, and says what would. */
function refusalOf([misfit]: Misfits, schema: TSchema | undefined): GatewayError {
  const { instancePath = '', keyword, message, params = {} } = misfit ?? {}
  const [, name = ''] = instancePath.split('/')
  const { allowedValues = [], additionalProperty = [] } = params
  const which = [allowedValues, additionalProperty].flat().join(', ')
  const members = schema !== undefined && Type.IsObject(schema) ? schema.properties : {}
  const { description = '' } = (members[name] ?? {}) as { readonly description?: string }
  // The description says it in words.
  const problem = keyword === 'pattern' ? 'must be valid' : message
  const texts = [`${name} ${problem} ${which}`.trim(), description]
  return malformed(texts.filter(Boolean).join('. '))
}

/** For the form of a page, whose fields its schema checks too. @throws GatewayError */
export async function runAct(path: string, body: object, request: FastifyRequest): Promise<object> {
  const act = request.server.acts.get(path)
  if (act === undefined) throw malformed('There is no such act.')
  // Fastify's type is a boolean; a validator of ours answers `true` or the errors.
  const { takes = Type.Unknown() } = act
  const fits = request.validateInput(body, takes) as unknown
  if (fits !== true) throw refusalOf((fits as { readonly error: Misfits }).error, takes)
  return await doAct(act, body, request)
}

export async function orUnavailable<T>(result: Promise<T>, what: string): Promise<T> {
  return await result.catch((cause: unknown) => {
    const message = `Redis, which holds the ${what}, does not answer. Please try again soon.`
    throw new GatewayError('session.unavailable', { cause, message })
  })
}

export async function doAct(
  { kind, run, secret }: Pick<Act, 'kind' | 'secret' | 'run'>,
  body: object,
  request: FastifyRequest,
  { name: operator, via }: Operator = request.operator ?? secretOperator
): Promise<object> {
  const { ledger, log } = request.server.actsTo
  const of = { act: kind, operator, via, address: clientAddress(request), requestId: request.id }
  const line = { kind: 'act', ...of, detail: scalarsOf(body) } as const
  try {
    if (!protectiveActs.has(kind)) ledger?.check()
  } catch (cause) {
    ledger?.append({ ...line, outcome: 'failed', code: 'ops.ledger' })
    throw new GatewayError('ops.ledger', { cause })
  }
  const commit = async (end: Pick<AuditEntry, 'outcome' | 'code'>, detail = line.detail) => {
    const late = 'an act of an operator is done though its line is not on disk yet'
    await ledger?.commit({ ...line, ...end, detail }).catch((err: unknown) => {
      log.warn({ event: 'audit.late', ...of, err }, late)
    })
  }
  try {
    const result = await run(body, request)
    const detail = scalarsOf({ ...body, ...result, ...(secret && { [secret]: '…' }) })
    await commit({ outcome: 'done' }, detail)
    log.info({ event: 'ops.act', ...of, detail }, `${operator} did ${kind}`)
    return result
  } catch (error) {
    await commit({ outcome: 'failed', code: toGatewayError(error).code })
    throw error
  }
}

function scalarsOf(details: object): AuditEntry['detail'] {
  const texts = Object.entries(details).map(([name, value]) => [
    name,
    typeof value === 'object' ? JSON.stringify(value).slice(0, maxText) : value
  ])
  return Object.fromEntries(texts) as AuditEntry['detail']
}

/** Describes every route below `/ops/api` that is added after it. */
export function addApiDescription(ops: FastifyInstance, version: string): void {
  ops.decorate('acts', new Map())
  ops.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: { title: 'Operators’ API of Console Gateway', version },
      security: [{ secret: [] }, { session: [] }],
      components: {
        securitySchemes: {
          secret: { type: 'http', scheme: 'bearer' },
          session: { type: 'apiKey', in: 'cookie', name: 'console_ops' }
        }
      }
    },
    transform: ({ schema, url }) => ({
      schema: url.startsWith(prefix) ? schema : { hide: true },
      url
    })
  })
  addRoute(ops, '/openapi.json', 'This description.', {
    answer: Type.Object({}),
    run: () => ops.swagger()
  })
}
