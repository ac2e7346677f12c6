/**
 * The operators' API: every route below `/ops/api` is added here once, with the schemas of what it
 * takes and of its answer. `/ops/api/openapi.json` describes them.
 */
import swagger from '@fastify/swagger'
import type { FastifyInstance, FastifyRequest, FastifySchema } from 'fastify'
import { type Static, type TSchema, Type } from 'typebox'
import { guardAdminScope } from './errors.ts'
import { malformed } from '../app/hooks/validation.ts'
import { GatewayError } from '../errors/errors.ts'
import { doInLedger } from './act-ledger.ts'

const prefix = '/ops/api'

interface Route<A extends TSchema> {
  /** Below `/ops/api`. */
  readonly path: string
  /** One line for OpenAPI. */
  readonly summary: string
  /** The message for a request that does not fit; without it the common one. */
  readonly hint?: string
  readonly answer: A
}

interface Read<A extends TSchema, Q extends TSchema> extends Route<A> {
  readonly query?: Q
  /** Of a path with parameters. */
  readonly params?: Q
  /** @param asked the query or the parameters */
  readonly read: (asked: Static<Q>) => Static<A> | Promise<Static<A>>
}

interface Act<A extends TSchema, B extends TSchema> extends Route<A> {
  /** Names the act in the ledger, such as `sessions.close`. */
  readonly kind: string
  readonly body: B
  readonly run: (body: Static<B>, request: FastifyRequest) => Promise<Static<A>>
}

declare module 'fastify' {
  interface FastifySchema {
    /** One line for OpenAPI. */
    summary?: string
  }
  interface FastifyInstance {
    /** Acts by their paths. */
    acts: Map<string, Act<TSchema, TSchema>>
  }
}

/** Adds routes that need an operator, below `/ops/api`. */
export function addOpsScope(ops: FastifyInstance, add: (scope: FastifyInstance) => void): void {
  ops.register(
    async scope => {
      guardAdminScope(scope)
      add(scope)
    },
    { prefix }
  )
}

/** Adds a route that changes nothing to a scope of `addOpsScope`. */
export function addRead<A extends TSchema, Q extends TSchema>(
  scope: FastifyInstance,
  route: Read<A, Q>
): void {
  const { path, query, params, read } = route
  const schema = {
    ...(query !== undefined && { querystring: query }),
    ...(params !== undefined && { params })
  }
  scope.get(path, optionsOf(route, schema), async request => {
    return await read((params === undefined ? request.query : request.params) as Static<Q>)
  })
}

/** Adds a route that changes anything: it stands in the audit ledger before it is answered. */
export function addAct<A extends TSchema, B extends TSchema>(
  scope: FastifyInstance,
  act: Act<A, B>
): void {
  const { path, body } = act
  scope.acts.set(path, act as unknown as Act<TSchema, TSchema>)
  scope.post(
    path,
    optionsOf(act, { body }),
    async request => await doInLedger(act, request.body as Static<B>, request)
  )
}

function optionsOf({ summary, hint, answer }: Route<TSchema>, schema: FastifySchema) {
  return {
    schema: { summary, ...schema, response: { 200: answer } },
    ...(hint !== undefined && { schemaErrorFormatter: malformed(hint) })
  }
}

/**
 * Runs an act for the form of a page, whose fields its schema checks too.
 * @throws GatewayError
 */
export async function runAct(path: string, body: object, request: FastifyRequest): Promise<object> {
  const act = request.server.acts.get(path)
  if (act === undefined) throw malformed('There is no such act.')()
  const { hint = 'The form does not fit. Reload the page.' } = act
  // Fastify's type is a boolean; a validator of ours answers `true` or the errors.
  const fits: unknown = request.validateInput(body, act.body)
  if (fits !== true) throw malformed(hint)()
  return (await doInLedger(act, body, request)) as object
}

/** @throws GatewayError where Redis does not answer */
export async function orUnavailable<T>(result: Promise<T>, what: string): Promise<T> {
  return await result.catch((cause: unknown) => {
    const message = `Redis, which holds the ${what}, does not answer. Please try again soon.`
    throw new GatewayError('session.unavailable', { cause, message })
  })
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
  addOpsScope(ops, scope =>
    addRead(scope, {
      path: '/openapi.json',
      summary: 'This description.',
      answer: Type.Object({}),
      read: () => ops.swagger()
    })
  )
}
