/** The public interface as OpenAPI 3.1, from config alone. */
import { createHash } from 'node:crypto'
import type { Config } from '../config/schema/config.ts'
import { closeBody, loginBody, ownEndpoints, type OwnKey } from '../config/schema/own-endpoints.ts'
import { parametersOf } from '../config/schema/public-path.ts'
import { pathsOf, routeSettings } from '../config/schema/resolved.ts'
import type { RouteConfig } from '../config/schema/routes.ts'
import type { JsonSchema } from '../contract/schema.ts'
import { type ErrorCode, errorKinds } from '../errors/errors.ts'
import { isRecord, stepsOf, valueAt } from '../json/values.ts'
import { createEnvelope, type Envelope } from '../shaping/envelope.ts'
import { isWrapped } from '../shaping/shape.ts'
import { failureSchema, ownSchema, successSchema } from './samples.ts'

type Members = Record<string, unknown>

const description =
  'The endpoints of the console, generated from the gateway’s config; the version changes with the ' +
  'content. Every GET of a route answers HEAD too. A known path with another method is 405 ' +
  '`route.method` with `Allow`, an unknown one 404 `route.unknown`, both in the error envelope. ' +
  '`{rest}` may contain slashes.'

const parameter = (name: string) => ({
  name,
  in: 'path',
  required: true,
  schema: { type: 'string', minLength: 1 }
})

export function openApi(config: Config): Members {
  const schemas: Record<string, JsonSchema> = {}
  const envelope = createEnvelope(config.gateway.envelope)
  const failure = `Failure${pascal(config.gateway.envelope.dialect)}`
  schemas[failure] = failureSchema(envelope)
  const failures = { envelope, schema: { $ref: `#/components/schemas/${failure}` } }
  const operations = operationsOf(config, envelope, (name, { contract }) => {
    const schema = config.contracts[contract?.file ?? '']
    return schema && addContract(schemas, name, schema)
  })
  const paths: Record<string, Members> = {}
  const ids = new Set<string>()
  for (const operation of operations) {
    for (const path of operation.paths) {
      const named = path.replace(/\*$/, ':rest')
      const parameters = parametersOf(named).map(parameter)
      const template = named.replaceAll(/(?<=\/):(\w+)/g, '{$1}')
      const item = (paths[template] ??= parameters.length === 0 ? {} : { parameters })
      for (const method of operation.methods) {
        if (method === 'HEAD') continue
        const operationId = freeName(`${method.toLowerCase()}${pascal(operation.name)}`, ids)
        item[method.toLowerCase()] = { operationId, ...described(operation, method, failures) }
      }
    }
  }
  const document = {
    servers: [{ url: config.gateway.server.mount ?? '/' }],
    tags: [
      { name: 'account', description: 'Endpoints of the gateway itself.' },
      { name: 'routes', description: 'Endpoints of back-ends.' }
    ],
    paths,
    components: {
      securitySchemes: { session: sessionCookie(config), key: { type: 'http', scheme: 'bearer' } },
      schemas
    }
  }
  // A hash of the document, so that owners of a copy see changes.
  const version = createHash('sha256').update(JSON.stringify(document)).digest('hex').slice(0, 12)
  return { openapi: '3.1.0', info: { title: 'Console Gateway', version, description }, ...document }
}

/** The schemas of a body, by its type. */
type Content = Readonly<Record<string, { readonly schema?: JsonSchema | undefined }>>

type Operation = ReturnType<typeof operationsOf>[number]

const json = (schema: JsonSchema): Content => ({ 'application/json': { schema } })
const bytes: Content = { '*/*': {} }

/** @param contractOf the reference to the contract of a route; undefined where it has none */
function operationsOf(
  config: Config,
  envelope: Envelope,
  contractOf: (name: string, route: Pick<RouteConfig, 'contract'>) => JsonSchema | undefined
) {
  const { routes } = config
  return [
    ...ownOperations(config, envelope, contractOf('profile', routes.endpoints.profile)),
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
        content: contentOf(config, route, envelope, contractOf(name, route)),
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

function sessionCookie({ gateway }: Config) {
  const { secure, name } = gateway.session.cookie
  return {
    type: 'apiKey',
    in: 'cookie',
    name: secure ? `__Host-${name}` : name,
    description:
      'Set at sign-in, HttpOnly. Calls other than GET, and sign-out, must come from the ' +
      'console’s own origin or from one of server.origins.'
  }
}

interface Failures {
  readonly envelope: Envelope
  readonly schema: JsonSchema
}

function described(operation: Operation, method: string, failures: Failures): Members {
  const { name, isOwn, access, keys, requestBody } = operation
  const callers = [{ session: [] }, ...(keys ? [{ key: [] }] : [])]
  return {
    summary: isOwn ? `${pascal(name)} of the gateway` : `The route ${name}`,
    tags: [isOwn ? 'account' : 'routes'],
    ...(access !== 'public' && { security: callers }),
    ...(typeof access === 'object' && { 'x-roles': access.roles }),
    ...(method !== 'GET' && requestBody !== undefined && { requestBody }),
    responses: responsesOf(operation, method, failures)
  }
}

function responsesOf(
  operation: Operation,
  method: string,
  { envelope, schema: failure }: Failures
): Members {
  const { access, errorStatus, status, content, takesUpgrades } = operation
  // A back-end may answer 201 or 204.
  const success = String(status ?? (method === 'GET' ? 200 : '2XX'))
  const statusOf = (code: ErrorCode) => {
    const general = errorStatus === 'ok' ? 200 : errorKinds[code].status
    const own = String(envelope.statusOf(code) ?? general)
    return own === '200' && success === '2XX' ? success : own
  }
  const codes: ErrorCode[] = ['limit.exceeded']
  if (access !== 'public') codes.push('session.none')
  if (typeof access === 'object') codes.push('route.forbidden')
  const [errorType = ''] = envelope.errorType.split(';', 1)
  const failed = { [errorType]: { schema: failure } }
  const ofCodes = Object.entries(Object.groupBy(codes, statusOf)).map(([key, of = []]) => {
    const texts = of.map(code => `\`${code}\`: ${errorKinds[code].en}`)
    return [key, { description: texts.join('\n\n'), content: failed }] as const
  })
  const isBytes = Object.hasOwn(content, '*/*')
  const mayFail = [...codes, 'upstream.error' as const].some(code => statusOf(code) === success)
  const { [errorType]: same, ...others } = content
  const both = same === undefined ? failure : { anyOf: [same.schema, failure] }
  return {
    ...(takesUpgrades && method === 'GET' && { 101: { description: 'A WebSocket.' } }),
    ...Object.fromEntries(ofCodes),
    [success]: {
      description: mayFail ? 'Success or failure, as the body says.' : 'Success.',
      content: mayFail && !isBytes ? { ...others, [errorType]: { schema: both } } : content
    },
    // JSON of a back-end passes as it is where no shape reads it.
    default: {
      description: isBytes ? 'An error, or that of the back-end.' : 'An error.',
      content: isBytes ? content : failed
    }
  }
}

/** Keywords whose members are names, and not keywords. */
const maps = new Set(['properties', 'patternProperties', 'dependentSchemas'])
/** Keywords that a component has not: the schemas that they hold become components themselves. */
const dropped = new Set(['$schema', '$id', '$defs', 'definitions'])

/** With what it refers to: generated types know components only. @returns the reference to it */
function addContract(schemas: Record<string, JsonSchema>, route: string, contract: JsonSchema) {
  const taken = new Set(Object.keys(schemas))
  const names = new Map<unknown, string>()

  function referenceTo(schema: unknown, name: string): string {
    let component = names.get(schema)
    if (component === undefined) {
      component = freeName(`${pascal(route)}Data${pascal(name)}`, taken)
      names.set(schema, component)
      schemas[component] = rewrite(schema, false) as JsonSchema
    }
    return `#/components/schemas/${component}`
  }

  function rewrite(value: unknown, isMap: boolean): unknown {
    if (Array.isArray(value)) return value.map(each => rewrite(each, false))
    if (!isRecord(value)) return value
    const members = Object.entries(value).flatMap(([key, inner]) => {
      if (isMap) return [[key, rewrite(inner, false)]]
      if (dropped.has(key)) return []
      if (key !== '$ref') return [[key, rewrite(inner, maps.has(key))]]
      const steps = stepsOf(String(inner), decodeURIComponent)
      return [[key, referenceTo(valueAt(contract, steps), steps.at(-1) ?? '')]]
    })
    return Object.fromEntries(members) as unknown
  }

  return { $ref: referenceTo(contract, '') }
}

function pascal(name: string): string {
  return name
    .split(/[^A-Za-z0-9]+/)
    .map(word => word.charAt(0).toUpperCase() + word.slice(1))
    .join('')
}

/** The name, with a number where it is taken; it is taken from now on. */
function freeName(name: string, taken: Set<string>): string {
  let free = name
  for (let n = 2; taken.has(free); n++) free = `${name}${n}`
  taken.add(free)
  return free
}
