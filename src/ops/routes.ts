/** The operators' API. `/ops/api/openapi.json` describes it by the schemas of its routes. */
import swagger from '@fastify/swagger'
import type { FastifyInstance, FastifyRequest, FastifySchema, RouteHandlerMethod } from 'fastify'
import { type Static, type TSchema, Type } from 'typebox'
import { malformed } from '../app/hooks/validation.ts'
import type { Config } from '../config/schema/config.ts'
import { GatewayError } from '../errors/errors.ts'
import { isRecord } from '../json/values.ts'
import type { Services } from '../services/services.ts'
import type { Session } from '../session/types.ts'
import { doAct } from './acts.ts'

const prefix = '/ops/api'

type Used = 'sessions' | 'lockouts' | 'callers' | 'highestUse' | 'maintenance' | 'failures'

export interface Desk extends Pick<Services, Used> {
  readonly config: () => Config
  /** Signs sessions that have ended out at their back-ends; not awaited. */
  readonly signOut: (ended: readonly Session[]) => void
}

interface Route {
  readonly path: string
  /** One line for OpenAPI. */
  readonly summary: string
  /** The message for a request that does not fit; without it the common one. */
  readonly hint?: string
}

interface Read<A extends TSchema, Q extends TSchema> extends Route {
  readonly answer: A
  readonly query?: Q
  /** Of a path with parameters. */
  readonly params?: Q
  /** @param asked the query or the parameters */
  readonly read: (asked: Static<Q>) => Static<A> | Promise<Static<A>>
}

interface Act<A extends TSchema, B extends TSchema> extends Route {
  /** Names the act in the ledger, such as `sessions.close`. */
  readonly kind: string
  readonly answer: A
  readonly body: B
  /** The member of the answer that the ledger must not have. */
  readonly secret?: string
  readonly run: (body: Static<B>, request: FastifyRequest) => Promise<Static<A> & object>
}

declare module 'fastify' {
  interface FastifySchema {
    /** One line for OpenAPI. */
    summary?: string
  }
  interface FastifyInstance {
    acts: Map<string, Act<TSchema, TSchema>>
  }
}

export function addRead<A extends TSchema, Q extends TSchema>(
  ops: FastifyInstance,
  route: Read<A, Q>
): void {
  const { query, params, answer, read } = route
  const schema = {
    ...(query && { querystring: query }),
    ...(params && { params }),
    response: { 200: answer }
  }
  addRoute(ops, 'GET', { ...route, schema }, async request => {
    return await read((params ? request.params : request.query) as Static<Q>)
  })
}

/** An act stands in the audit ledger before it is answered. */
export function addAct<A extends TSchema, B extends TSchema>(
  ops: FastifyInstance,
  route: Act<A, B>
): void {
  const act = route as unknown as Act<TSchema, TSchema>
  ops.acts.set(route.path, act)
  const schema = { body: route.body, response: { 200: route.answer } }
  addRoute(ops, 'POST', { ...route, schema }, async request => {
    return await doAct(act, request.body as object, request)
  })
}

/** Adds a route in a plugin of its own: only those that are added so are described. */
export function addRoute(
  ops: FastifyInstance,
  method: 'GET' | 'POST',
  route: Route & { readonly schema?: FastifySchema },
  handler: RouteHandlerMethod
): void {
  const { path, summary, hint, schema } = route
  ops.register(async scope => {
    scope.route({
      method,
      url: prefix + path,
      schema: { summary, ...schema },
      ...(hint !== undefined && { schemaErrorFormatter: malformed(hint) }),
      preValidation: async request => {
        // A command without parameters sends no body.
        if (!isRecord(request.body)) request.body = {}
      },
      handler
    })
  })
}

/** For the form of a page, whose fields its schema checks too. @throws GatewayError */
export async function runAct(path: string, body: object, request: FastifyRequest): Promise<object> {
  const act = request.server.acts.get(path)
  if (act === undefined) throw malformed('There is no such act.')()
  const { hint = 'The form does not fit. Reload the page.' } = act
  // Fastify's type is a boolean; a validator of ours answers `true` or the errors.
  const fits: unknown = request.validateInput(body, act.body)
  if (fits !== true) throw malformed(hint)()
  return await doAct(act, body, request)
}

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
  addRead(ops, {
    path: '/openapi.json',
    summary: 'This description.',
    answer: Type.Object({}),
    read: () => ops.swagger()
  })
}
