/** Lists the operations of an OpenAPI document: the gateway's own endpoints and the routes of config. */
import type { Config } from '../config/schema/config.ts'
import { type OwnKey, ownEndpoints } from '../config/schema/own-endpoints.ts'
import { closeBody, loginBody } from '../config/schema/request-bodies.ts'
import { pathsOf, profilePlacement, routeSettings } from '../config/schema/resolved.ts'
import type { RouteConfig } from '../config/schema/routes.ts'
import type { JsonSchema } from '../contract/schema.ts'
import { createEnvelope, type Envelope } from '../shaping/envelope.ts'
import { isWrapped } from '../shaping/shape.ts'
import { ownSchemas, successSchema } from './samples.ts'

export interface Operation {
  /** Of the route, or the endpoint. */
  readonly name: string
  readonly isOwn: boolean
  readonly paths: readonly string[]
  readonly methods: readonly string[]
  readonly access: RouteConfig['access']
  readonly dialect: string
  readonly envelope: Envelope
  readonly errorStatus: 'own' | 'ok'
  /** Of a success; undefined where a back-end chooses it, or where there is no content. */
  readonly body: JsonSchema | undefined
  /** Undefined where a back-end chooses it. */
  readonly status: number | undefined
  readonly request?: JsonSchema | undefined
  readonly takesUpgrades?: boolean
}

/** @param contractOf adds a contract to the components, and refers to it */
export function operationsOf(
  config: Config,
  contractOf: (name: string, schema: JsonSchema) => JsonSchema
): Operation[] {
  const { gateway, routes, contracts } = config
  const of = (name: string) => {
    const schema = Object.hasOwn(contracts, name) ? contracts[name] : undefined
    return schema && contractOf(name, schema)
  }
  return [
    ...ownOperations(config, of('profile')),
    ...Object.entries(routes.routes).map(([name, route]): Operation => {
      const { dialect, errorStatus } = routeSettings(config, name, route)
      const envelope = createEnvelope({ ...gateway.envelope, dialect })
      return {
        name,
        isOwn: false,
        paths: pathsOf(routes, route.path),
        methods: route.methods,
        access: route.access,
        dialect,
        envelope,
        errorStatus,
        body: routeBody(config, route, envelope, of(name)),
        status: route.answer?.status ?? (route.upstream === undefined ? 200 : undefined),
        takesUpgrades: route.websocket !== undefined
      }
    })
  ]
}

/** Undefined for a response that passes byte for byte. */
function routeBody(
  { routes }: Config,
  { answer, shape, parts }: RouteConfig,
  envelope: Envelope,
  contract: JsonSchema | undefined
): JsonSchema | undefined {
  if (answer !== undefined) return successSchema(envelope, {}, answer.inEnvelope)
  if (shape === undefined) return contract ?? (Object.keys(parts).length > 0 ? {} : undefined)
  const data = contract ?? {}
  const isInEnvelope = isWrapped(routes.shapes[shape] ?? [], routes.shapes)
  return isInEnvelope && envelope.dataName !== false ? successSchema(envelope, data) : data
}

function ownOperations(config: Config, profileContract: JsonSchema | undefined): Operation[] {
  const { gateway, routes } = config
  const { endpoints } = routes
  const envelope = createEnvelope(gateway.envelope)
  const schemas = ownSchemas(config)
  const statuses: Partial<Record<OwnKey, number | undefined>> = {
    login: endpoints.login.answer?.status,
    logout: endpoints.logout.answer?.status,
    profile: endpoints.profile.answer?.status,
    refresh: endpoints.refresh?.answer?.status,
    check: 204
  }
  const requests: Partial<Record<OwnKey, JsonSchema>> = {
    login: loginBody(gateway.login.fields),
    close: closeBody
  }
  return ownEndpoints(endpoints).map(({ key, name, path, methods, needsSession }) => ({
    name: key,
    isOwn: true,
    paths: pathsOf(routes, path),
    methods: methods.filter(method => method !== 'HEAD'),
    access: needsSession && key !== 'logout' ? 'session' : 'public',
    dialect: gateway.envelope.dialect,
    envelope,
    errorStatus:
      name === 'profile'
        ? routeSettings(config, name, endpoints.profile).errorStatus
        : gateway.envelope.errorStatus,
    body:
      key === 'profile' && profileContract !== undefined
        ? successSchema(envelope, profileContract, profilePlacement(routes))
        : schemas[key],
    status: statuses[key] ?? 200,
    request: requests[key]
  }))
}
