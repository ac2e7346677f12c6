/** The public interface as OpenAPI 3.1, from config alone. */
import { createHash } from 'node:crypto'
import type { JsonSchema } from '../contract/schema.ts'
import type { Config } from '../config/schema/config.ts'
import { isEndpoint } from '../config/schema/own-endpoints.ts'
import { type ErrorCode, errorKinds } from '../errors.ts'
import { mountOf } from '../config/schema/resolved.ts'
import { parametersOf } from '../config/schema/public-path.ts'
import { describe } from './describe.ts'
import { errorsByStatus } from './error-statuses.ts'
import { envelopeName, freeName, type Operation, reference } from './operations.ts'
import { pascal } from './contract-components.ts'

type Members = Record<string, unknown>

const rest = {
  name: 'rest',
  in: 'path',
  required: true,
  schema: { type: 'string', minLength: 1 },
  description: 'The rest of the path; may contain slashes.'
}

function pathParameters(path: string): Members[] {
  const segments = parametersOf(path).map(name => ({
    name,
    in: 'path',
    required: true,
    schema: { type: 'string', minLength: 1 }
  }))
  return path.endsWith('*') ? [...segments, rest] : segments
}

export function openApi(config: Config): Members {
  const {
    gateway: {
      session: { cookie },
      envelope
    }
  } = config
  const { operations, schemas } = describe(config)
  const paths: Record<string, Members> = {}
  const responses: Record<string, Members> = {}
  const shared: Shared = { responses, responseNames: new Map(), operationIds: new Set() }
  for (const operation of operations) {
    const path = operation.path.replace(/\*$/, '{rest}').replaceAll(/(?<=\/):(\w+)/g, '{$1}')
    const parameters = pathParameters(operation.path)
    const item = (paths[path] ??= parameters.length === 0 ? {} : { parameters })
    item[operation.method.toLowerCase()] = operationOf(operation, envelope.dialect, shared)
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
          name: cookie.secure ? `__Host-${cookie.name}` : cookie.name,
          description:
            'Set at sign-in, HttpOnly. Calls other than GET, and sign-out, must come from the console’s own origin or from one of server.origins.'
        }
      },
      schemas,
      responses
    }
  }
  // A hash of the document, so that owners of a copy see changes.
  const version = createHash('sha256').update(JSON.stringify(document)).digest('hex').slice(0, 12)
  return {
    openapi: '3.1.0',
    info: {
      title: 'Console Gateway',
      version,
      description:
        'The endpoints of the console, generated from the gateway’s config; the version changes with the content. Every GET of a proxied route answers HEAD too. A known path with another method is 405 `route.method` with `Allow`, an unknown one 404 `route.unknown`, both in the error envelope.'
    },
    ...document
  }
}

/** State that the operations of a document share. */
interface Shared {
  /** Filled with the responses that operations refer to. */
  readonly responses: Record<string, Members>
  /** Their names, by their JSON. */
  readonly responseNames: Map<string, string>
  readonly operationIds: Set<string>
}

function operationOf(operation: Operation, usual: Operation['dialect'], shared: Shared): Members {
  const { name, method, summary, access, request, isAlias } = operation
  const isOwn = isEndpoint(name)
  const operationId = freeName(`${method.toLowerCase()}${pascal(name)}`, id =>
    shared.operationIds.has(id)
  )
  shared.operationIds.add(operationId)
  return {
    operationId,
    summary,
    ...(isAlias && { description: `An alias of ${name}.` }),
    tags: [isOwn ? 'account' : 'routes'],
    ...(access !== 'public' && { security: [{ session: [] }] }),
    ...(typeof access === 'object' && { 'x-roles': access.roles }),
    ...(request !== undefined && { requestBody: { required: true, content: json(request) } }),
    ...(request === undefined &&
      !isOwn &&
      operation.upstreamErrors !== 'none' &&
      method !== 'GET' && {
        requestBody: { content: { '*/*': {} }, description: 'Passed to the upstream.' }
      }),
    responses: responsesOf(operation, usual, shared)
  }
}

function json(schema: JsonSchema) {
  return { 'application/json': { schema } }
}

/** A reference to an equal response of the document, which is added if there is none. */
function sharedResponse(
  response: Members,
  name: string,
  { responses, responseNames }: Shared
): JsonSchema {
  const text = JSON.stringify(response)
  let component = responseNames.get(text)
  if (component === undefined) {
    component = freeName(name, other => Object.hasOwn(responses, other))
    responseNames.set(text, component)
    responses[component] = response
  }
  return { $ref: `#/components/responses/${component}` }
}

const switched = {
  101: { description: 'The connection is a WebSocket: the request was an upgrade.' }
}

function responsesOf(operation: Operation, usual: Operation['dialect'], shared: Shared): Members {
  const upgrade = operation.takesUpgrades === true && operation.method === 'GET' ? switched : {}
  const { method, answer, errors, statusOf, upstreamErrors } = operation
  // A back-end may answer 201 or 204.
  const successKey = upstreamErrors !== 'none' && method !== 'GET' ? '2XX' : operation.status
  const success =
    answer === undefined
      ? { description: 'The upstream’s response.', content: { '*/*': {} } }
      : { description: 'Success.', content: json(answer) }
  const failures = failuresOf(operation, usual)
  return {
    ...upgrade,
    [successKey]: success,
    ...Object.fromEntries(
      errorsByStatus(errors, statusOf).map(([status, codes]) => [
        status,
        status === operation.status
          ? eitherOf(operation, failures, codes)
          : sharedResponse(failures.response(codes, status), `Failure${status}`, shared)
      ])
    ),
    ...Object.fromEntries(
      (keepsUpstreamStatus(operation) ? ['4XX', '5XX'] : []).map(status => [
        status,
        sharedResponse(
          upstreamErrors === 'plain'
            ? { description: plainErrorText(operation), content: { '*/*': {} } }
            : {
                description: 'The upstream’s error in an envelope: `upstream.error`.',
                content: failures.content(failures.anyFailure)
              },
          'UpstreamFailure',
          shared
        )
      ])
    )
  }
}

/** A success, or an error with the same status. */
function eitherOf(
  { answer, status, errorsAreOk, failureFormat: { contentType } }: Operation,
  failures: Failures,
  codes: readonly ErrorCode[]
): Members {
  const { description, ...response } = failures.response(codes, status)
  const success = answer ?? {}
  const failure = errorsAreOk ? failures.anyFailure : failures.withCodes(codes, status)
  const both = json({ anyOf: [success, failure] })
  // Problem details have a content type of their own.
  const apart = { ...json(success), ...failures.content(failure) }
  return {
    ...response,
    description:
      status === 200
        ? 'Success or failure, as the envelope says.'
        : `The route’s answer, or a failure:\n\n${description}`,
    content: {
      ...(answer === undefined && { '*/*': {} }),
      ...(contentType in both ? both : apart)
    }
  }
}

/** Whether an error of the upstream may have the status that the upstream gave it. */
function keepsUpstreamStatus({ upstreamErrors, statusOf }: Operation): boolean {
  if (upstreamErrors === 'plain') return true
  return upstreamErrors === 'enveloped' && statusOf('upstream.error') === undefined
}

/** Only JSON passes as it is; config may set the status of the envelope in place of others. */
function plainErrorText({ statusOf }: Operation): string {
  return statusOf('upstream.error') === undefined
    ? 'The upstream’s response if it is JSON; else an envelope, `upstream.error`.'
    : 'The upstream’s response if it is JSON.'
}

const retryAfter = {
  'Retry-After': { description: 'Seconds to wait.', schema: { type: 'integer' } }
}

type Failures = ReturnType<typeof failuresOf>

/** The failures of an operation, as schemas and as responses. */
function failuresOf(operation: Operation, usual: Operation['dialect']) {
  const { dialect, failureBeside, upstreamErrors } = operation
  const { codeName, contentType } = operation.failureFormat
  const isAnyStatus = upstreamErrors === 'enveloped' && keepsUpstreamStatus(operation)
  const anyFailure = reference(envelopeName('Failure', dialect, usual))
  const content = (schema: JsonSchema) => ({ [contentType]: { schema } })
  const withCodes = (codes: readonly ErrorCode[], status: number): JsonSchema => {
    const all = isAnyStatus ? [...new Set([...codes, 'upstream.error'])] : codes
    const properties = {
      ...(codeName !== false && { [codeName]: { enum: all } }),
      ...failureBeside?.[status]
    }
    return { allOf: [anyFailure, { type: 'object', properties }] }
  }
  const response = (codes: readonly ErrorCode[], status: number) => ({
    description: codes.map(code => `\`${code}\`: ${errorKinds[code].en}`).join('\n\n'),
    ...((status === 429 || status === 503) && { headers: retryAfter }),
    content: content(withCodes(codes, status))
  })
  return { anyFailure, content, withCodes, response }
}
