/**
 * The operators' API: where its routes stand, and their description in OpenAPI. Add routes by
 * `addOpsScope`, each with a `schema` (`summary`, `querystring`, `params`, `body`), and those that
 * change anything by `addAct`.
 */
import type { FastifyInstance, RouteOptions } from 'fastify'
import { guardAdminScope } from './browser-guard.ts'

const apiPrefix = '/ops/api'

type JsonObject = Readonly<Record<string, unknown>>
type Operations = Record<string, JsonObject>
type Paths = Record<string, Operations>

declare module 'fastify' {
  interface FastifySchema {
    /** One line for OpenAPI. */
    summary?: string
    description?: string
  }
  interface FastifyContextConfig {
    /** JSON Schema of a successful response, for OpenAPI; `schema.response` would drop members. */
    responds?: object
  }
}

/** Adds routes that need an operator, below `/ops/api`. */
export function addOpsScope(ops: FastifyInstance, add: (scope: FastifyInstance) => void): void {
  ops.register(
    async scope => {
      guardAdminScope(scope)
      add(scope)
    },
    { prefix: apiPrefix }
  )
}

/** `/ops/api/openapi.json`: describes every route below `/ops/api` that is added after it. */
export function addApiDescription(ops: FastifyInstance, version: string): void {
  const paths: Paths = {}
  ops.addHook('onRoute', route => {
    if (!route.url.startsWith(`${apiPrefix}/`) || route.url.includes('*')) return
    const path = route.url.replaceAll(/:([A-Za-z]+)/g, '{$1}')
    for (const method of [route.method].flat()) {
      if (method !== 'HEAD') (paths[path] ??= {})[method.toLowerCase()] = operationOf(route)
    }
  })
  addOpsScope(ops, scope => {
    const schema = { summary: 'This description.' }
    scope.get('/openapi.json', { schema }, async () => ({
      openapi: '3.1.0',
      info: { title: 'Operators’ API of Console Gateway', version },
      paths: paths,
      security: [{ secret: [] }, { session: [] }],
      components: {
        securitySchemes: {
          secret: { type: 'http', scheme: 'bearer' },
          session: { type: 'apiKey', in: 'cookie', name: 'console_ops' }
        }
      }
    }))
  })
}

function operationOf({ schema = {}, config }: RouteOptions): JsonObject {
  const { summary, description, body } = schema
  const parameters = [
    ...parametersOf('query', schema.querystring),
    ...parametersOf('path', schema.params)
  ]
  const content = config?.responds === undefined ? undefined : jsonContent(config.responds)
  return {
    ...(summary !== undefined && { summary }),
    ...(description !== undefined && { description }),
    ...(parameters.length > 0 && { parameters }),
    ...(body !== undefined && { requestBody: { content: jsonContent(body) } }),
    responses: { 200: { description: 'OK', ...(content !== undefined && { content }) } }
  }
}

function jsonContent(schema: unknown) {
  return { 'application/json': { schema } }
}

/** Of an object, or of every object of a union. */
function parametersOf(place: 'query' | 'path', schema: unknown): JsonObject[] {
  const {
    properties = {},
    required = [],
    anyOf = []
  } = (schema ?? {}) as {
    readonly properties?: Readonly<Record<string, object>>
    readonly required?: readonly string[]
    readonly anyOf?: readonly unknown[]
  }
  const parameters = new Map(
    [
      ...anyOf.flatMap(each => parametersOf(place, each)),
      ...Object.entries(properties).map(([name, of]) => ({
        name,
        in: place,
        required: place === 'path' || (required.includes(name) && !('default' in of)),
        schema: of
      }))
    ].map(parameter => [
      String(parameter['name' as keyof typeof parameter]),
      parameter as JsonObject
    ])
  )
  return [...parameters.values()]
}
