/** Lists the operations of an OpenAPI document: the gateway's own endpoints and the routes of config. */
import type { Config } from '../config/schema/config.ts'
import { type OwnKey, ownEndpoints, closeBody, loginBody } from '../config/schema/own-endpoints.ts'
import { pathsOf, routeSettings } from '../config/schema/resolved.ts'
import type { RouteConfig } from '../config/schema/routes.ts'
import type { JsonSchema } from '../contract/schema.ts'
import type { Envelope } from '../shaping/envelope.ts'
import { isWrapped } from '../shaping/shape.ts'
import { ownSchema, successSchema } from './samples.ts'

/** The schemas of a body, by its type. */
export type Content = Readonly<Record<string, { readonly schema?: JsonSchema | undefined }>>

export type Operation = ReturnType<typeof operationsOf>[number]

const json = (schema: JsonSchema): Content => ({ 'application/json': { schema } })
const bytes: Content = { '*/*': {} }

/** @param contractOf the reference to the contract of a route; undefined where it has none */
export function operationsOf(
  config: Config,
  envelope: Envelope,
  contractOf: (name: string) => JsonSchema | undefined
) {
  const { routes } = config
  return [
    ...ownOperations(config, envelope, contractOf('profile')),
    ...Object.entries(routes.routes).map(([name, route]) => {
      const { path, methods, access, keys, upstream, answer, websocket } = route
      const isOfBackEnd = upstream !== undefined
      return {
        name,
        isOwn: false,
        paths: pathsOf(routes, path),
        methods,
        access,
        keys,
        errorStatus: routeSettings(config, name, route).errorStatus,
        requestBody: isOfBackEnd ? { content: bytes, description: 'Passed on.' } : undefined,
        status: isOfBackEnd ? undefined : (answer?.status ?? 200),
        content: contentOf(config, route, envelope, contractOf(name)),
        takesUpgrades: websocket !== undefined
      }
    })
  ]
}

function contentOf(
  config: Config,
  { answer, shape = '', parts = {} }: RouteConfig,
  envelope: Envelope,
  contract: JsonSchema | undefined
): Content {
  const { shapes } = config.routes
  if (answer !== undefined) return json(successSchema(envelope, {}, answer.inEnvelope))
  if (isWrapped(shapes[shape] ?? [], shapes)) return json(successSchema(envelope, contract ?? {}))
  const isJson = contract !== undefined || shape !== '' || Object.keys(parts).length > 0
  return isJson ? json(contract ?? {}) : bytes
}

function ownOperations(config: Config, envelope: Envelope, contract: JsonSchema | undefined) {
  const { gateway, routes } = config
  const placement = routes.endpoints.profile.answer?.inEnvelope
  const written: Partial<Record<OwnKey, Pick<RouteConfig, 'path' | 'answer'>>> = routes.endpoints
  const requests: Partial<Record<OwnKey, JsonSchema>> = {
    login: loginBody(gateway.login.fields),
    close: closeBody
  }
  const schemaOf = (key: OwnKey) => {
    if (key === 'profile' && contract !== undefined) {
      return successSchema(envelope, contract, placement)
    }
    const answer = written[key]?.answer
    // Config writes it: a value of any kind.
    return answer ? successSchema(envelope, {}, answer.inEnvelope) : ownSchema(envelope, key)
  }
  return ownEndpoints(routes.endpoints).map(({ key, path, methods, needsSession }) => {
    const request = requests[key]
    return {
      name: key,
      isOwn: true,
      paths: pathsOf(routes, path),
      methods,
      access: needsSession && key !== 'logout' ? ('session' as const) : ('public' as const),
      keys: false,
      takesUpgrades: false,
      errorStatus: gateway.envelope.errorStatus,
      requestBody: request && { required: true, content: json(request) },
      status: key === 'check' ? 204 : 200,
      content: key === 'check' ? {} : json(schemaOf(key))
    }
  })
}
