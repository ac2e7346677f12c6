/** The public interface as OpenAPI 3.1, from config alone. */
import { createHash } from 'node:crypto'
import type { Config } from '../config/schema/config.ts'
import { parametersOf } from '../config/schema/public-path.ts'
import { mountOf } from '../config/schema/resolved.ts'
import { isSchema, type JsonSchema } from '../contract/schema.ts'
import { type ErrorCode, errorKinds } from '../errors/errors.ts'
import { addContract, freeName, pascal } from './components.ts'
import { type Operation, operationsOf } from './operations.ts'
import { failureSchema } from './samples.ts'

type Members = Record<string, unknown>

const description =
  'The endpoints of the console, generated from the gateway’s config; the version changes with the ' +
  'content. Every GET of a route answers HEAD too. A known path with another method is 405 ' +
  '`route.method` with `Allow`, an unknown one 404 `route.unknown`, both in the error envelope.'

export function openApi(config: Config): Members {
  const { session } = config.gateway
  const schemas: Record<string, JsonSchema> = {}
  const operations = operationsOf(config, (name, schema) => addContract(schemas, name, schema))
  const paths: Record<string, Members> = {}
  const ids = new Set<string>()
  for (const operation of operations) {
    for (const path of operation.paths) {
      const parameters = parametersIn(path)
      const item = (paths[templateOf(path)] ??= parameters.length === 0 ? {} : { parameters })
      for (const method of operation.methods) {
        if (method === 'HEAD') continue
        const operationId = freeName(`${method.toLowerCase()}${pascal(operation.name)}`, ids)
        item[method.toLowerCase()] = { operationId, ...described(operation, method, schemas) }
      }
    }
  }
  const document = {
    servers: [{ url: mountOf(config) || '/' }],
    tags: [
      { name: 'account', description: 'Endpoints of the gateway itself.' },
      { name: 'routes', description: 'Endpoints of back-ends.' }
    ],
    paths,
    components: {
      securitySchemes: {
        session: {
          type: 'apiKey',
          in: 'cookie',
          name: session.cookie.secure ? `__Host-${session.cookie.name}` : session.cookie.name,
          description:
            'Set at sign-in, HttpOnly. Calls other than GET, and sign-out, must come from the ' +
            'console’s own origin or from one of server.origins.'
        }
      },
      schemas
    }
  }
  // A hash of the document, so that owners of a copy see changes.
  const version = createHash('sha256').update(JSON.stringify(document)).digest('hex').slice(0, 12)
  return { openapi: '3.1.0', info: { title: 'Console Gateway', version, description }, ...document }
}

function described(operation: Operation, method: string, schemas: Record<string, JsonSchema>) {
  const { name, isOwn, access, request, body } = operation
  const passesBody = !isOwn && method !== 'GET' && operation.status === undefined
  return {
    summary: isOwn ? `${pascal(name)} of the gateway` : `The route ${name}`,
    tags: [isOwn ? 'account' : 'routes'],
    ...(access !== 'public' && { security: [{ session: [] }] }),
    ...(typeof access === 'object' && { 'x-roles': access.roles }),
    ...(request !== undefined && { requestBody: { required: true, content: json(request) } }),
    ...(passesBody && { requestBody: { content: { '*/*': {} }, description: 'Passed on.' } }),
    responses: responsesOf(operation, method, {
      failure: addFailure(schemas, operation),
      success: body
    })
  }
}

const retryAfter = {
  'Retry-After': { description: 'Seconds to wait.', schema: { type: 'integer' } }
}

function responsesOf(
  operation: Operation,
  method: string,
  { failure, success }: { readonly failure: JsonSchema; readonly success: JsonSchema | undefined }
): Members {
  const { access, status, isOwn, takesUpgrades, envelope } = operation
  // A back-end may answer 201 or 204.
  const ofBackEnd = method === 'GET' ? '200' : '2XX'
  const key = status === undefined ? ofBackEnd : String(status)
  const failures = new Map<string, ErrorCode[]>()
  const codes: ErrorCode[] = [
    ...(access === 'public' ? [] : (['session.none'] as const)),
    ...(typeof access === 'object' ? (['route.forbidden'] as const) : []),
    'limit.exceeded'
  ]
  for (const code of codes) {
    const of = String(statusOf(operation, code))
    failures.set(of, [...(failures.get(of) ?? []), code])
  }
  const success200 = key === '200' || key === '2XX'
  const isBeside =
    failures.has(success200 ? '200' : key) ||
    (success200 && statusOf(operation, 'upstream.error') === 200)
  const [errorType = ''] = envelope.errorType.split(';', 1)
  const failed = { [errorType]: { schema: failure } }
  const content = status === 204 ? {} : contentOf(success, isOwn)
  return {
    ...(takesUpgrades === true && method === 'GET' && { 101: { description: 'A WebSocket.' } }),
    [key]: isBeside
      ? { description: 'Success or failure, as the body says.', content: either(content, failed) }
      : { description: 'Success.', ...(status !== 204 && { content }) },
    ...Object.fromEntries(
      [...failures]
        .filter(([of]) => of !== key && of !== '200')
        .map(([of, all]) => [
          of,
          {
            description: all.map(code => `\`${code}\`: ${errorKinds[code].en}`).join('\n\n'),
            ...(of === '429' && { headers: retryAfter }),
            content: failed
          }
        ])
    ),
    // JSON of a back-end passes as it is where no shape reads it.
    default:
      success === undefined && !isOwn
        ? { description: 'An error, or that of the back-end.', content: { '*/*': {} } }
        : { description: 'An error.', content: failed }
  }
}

function statusOf({ envelope, errorStatus }: Operation, code: ErrorCode): number {
  return envelope.statusOf(code) ?? (errorStatus === 'ok' ? 200 : errorKinds[code].status)
}

function contentOf(success: JsonSchema | undefined, isOwn: boolean): Members {
  return success === undefined && !isOwn ? { '*/*': {} } : json(success ?? {})
}

/** Both, of which a reader learns by the body. */
function either(content: Members, failed: Members): Members {
  if (Object.hasOwn(content, '*/*')) return content
  const both = { ...failed, ...content }
  for (const type of Object.keys(failed)) {
    if (!Object.hasOwn(content, type)) continue
    const schemas = [content[type], failed[type]].map(each => isSchema(each) && each['schema'])
    both[type] = { schema: { anyOf: schemas } }
  }
  return both
}

function json(schema: JsonSchema) {
  return { 'application/json': { schema } }
}

const allCodes = Object.keys(errorKinds)

/** The errors of a dialect, once. */
function addFailure(
  schemas: Record<string, JsonSchema>,
  { dialect, envelope }: Operation
): JsonSchema {
  const name = `Failure${pascal(dialect)}`
  schemas[name] ??= failureSchema(envelope, allCodes)
  return { $ref: `#/components/schemas/${name}` }
}

function templateOf(path: string): string {
  return path.replace(/\*$/, '{rest}').replaceAll(/(?<=\/):(\w+)/g, '{$1}')
}

function parametersIn(path: string): Members[] {
  const schema = { type: 'string', minLength: 1 }
  const named = parametersOf(path).map(name => ({ name, in: 'path', required: true, schema }))
  if (!path.endsWith('*')) return named
  const text = 'The rest of the path; may contain slashes.'
  return [...named, { name: 'rest', in: 'path', required: true, schema, description: text }]
}
