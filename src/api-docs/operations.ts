/** Every public operation that a config makes, with what it takes and answers: what OpenAPI and TypeScript are written from. */
import { isRecord, type JsonSchema } from '../json-schema/closed-schema.ts'
import type { Config } from '../config/schema/config.ts'
import { credentialOf, type RouteConfig } from '../config/schema/routes.ts'
import { type ErrorCode, errorKinds } from '../errors.ts'
import {
  closedSchema,
  closeRequestSchema,
  currentUserSchema,
  type Dialect,
  errorCodeSchema,
  failureSchema,
  listedSessionSchema,
  loginBeside,
  loginRefusedSchema,
  loginRequestSchema,
  loginResultSchema,
  sessionSchema,
  successSchema
} from './own-responses.ts'
import { contractComponents, pascal } from './contract-components.ts'
import { errorsOf, type OperationFacts } from './error-codes.ts'
import { describeShape } from './shape-schema.ts'

type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

export interface Operation {
  /** The route's or endpoint's name, as in logs and limits. */
  readonly name: string
  readonly method: Method
  /** As in config, without the mount; `/*` at its end stands for what is below. */
  readonly path: string
  readonly isAlias: boolean
  readonly summary: string
  readonly access: RouteConfig['access']
  readonly dialect: Dialect
  readonly request?: JsonSchema
  /** The whole body of a success; undefined where it is the upstream's own. */
  readonly answer?: JsonSchema
  /** Where that is an envelope and nothing else: what is in it. */
  readonly wrapped?: Wrapped
  /** What a failure has beside the standard members, by status. */
  readonly failureBeside?: Readonly<Record<number, JsonSchema>>
  readonly errors: readonly ErrorCode[]
  /** Whether errors have the status 200. */
  readonly errorsAreOk: boolean
  /** How an upstream's own errors come through, with statuses of its own: as they are, or in the envelope. */
  readonly upstreamErrors: 'none' | 'plain' | 'enveloped'
}

interface Wrapped {
  readonly data: JsonSchema
  /** As an object with the members beside `data`. */
  readonly beside?: JsonSchema
}

export interface Description {
  readonly operations: readonly Operation[]
  /** By name; they refer to each other by `#/components/schemas/NAME`. */
  readonly schemas: Readonly<Record<string, JsonSchema>>
}

export const reference = (name: string): JsonSchema => ({ $ref: `#/components/schemas/${name}` })
/** The envelope of the config's own dialect has the plain name. */
export const envelopeName = (
  kind: 'Success' | 'Failure',
  dialect: Dialect,
  usual: Dialect
): string => (dialect === usual ? kind : `${pascal(dialect)}${kind}`)

/** What of an operation's facts is not the same everywhere. */
type Facts = Partial<OperationFacts>

export function describe(config: Config): Description {
  const {
    gateway: { envelope, login, session },
    routes: { endpoints, aliases, routes, shapes },
    contracts
  } = config
  const { upstreams } = config.routes
  const { dialect: usual, successCode } = envelope
  const operations: Operation[] = []
  const schemas: Record<string, JsonSchema> = {
    ErrorCode: errorCodeSchema,
    Failure: failureSchema(usual)
  }
  const errorsAreOk = envelope.errorStatus === 'ok'

  const named = (name: string, schema: JsonSchema): JsonSchema => {
    schemas[name] = schema
    return reference(name)
  }
  const contracted = (route: string, name: string): JsonSchema | undefined => {
    const schema = contracts[route]
    if (schema === undefined) return undefined
    const taken = new Set([...Object.keys(schemas), name])
    const nameOf = (wanted: string) => {
      const free = freeName(wanted, other => taken.has(other))
      taken.add(free)
      return free
    }
    Object.assign(schemas, contractComponents(schema, name, nameOf))
    return reference(name)
  }
  const success = (
    data: JsonSchema,
    beside: Readonly<Record<string, JsonSchema>> = {},
    required = Object.keys(beside),
    dialect = usual
  ) => ({
    answer: successSchema(dialect, successCode, data, beside, required),
    wrapped: {
      data,
      ...(Object.keys(beside).length > 0 && {
        beside: { type: 'object', properties: beside, required }
      })
    }
  })
  const add = (
    path: string,
    methods: readonly Method[],
    operation: Omit<
      Operation,
      'path' | 'method' | 'isAlias' | 'dialect' | 'errorsAreOk' | 'errors' | 'upstreamErrors'
    > &
      Partial<Operation> & { readonly facts: Facts }
  ) => {
    const { facts, ...rest } = operation
    const isBounded = Object.hasOwn(config.limits.inFlightPerRoute, operation.name)
    for (const [index, each] of [
      path,
      ...Object.entries(aliases).flatMap(([alias, target]) => (target === path ? [alias] : []))
    ].entries()) {
      for (const method of methods) {
        const errors = errorsOf({
          access: operation.access,
          isUnsafe: method !== 'GET',
          asksUpstream: false,
          namesSource: false,
          isRead: false,
          isStrict: false,
          isBounded,
          refusesSignIn: login.refusedStatus !== 200,
          refusesSessions: session.perUser.over === 'refuse',
          ...facts
        })
        operations.push({
          dialect: usual,
          errorsAreOk,
          upstreamErrors: 'none',
          ...rest,
          errors,
          method,
          path: each,
          isAlias: index > 0
        })
      }
    }
  }

  const namesSource = ({ upstream, parts }: Pick<RouteConfig, 'upstream' | 'parts'>) => {
    const names = [upstream, ...Object.values(parts).map(part => part.upstream)]
    return names.some(
      name => credentialOf(upstreams[name ?? '']?.credential ?? 'none').from !== undefined
    )
  }

  const asksUpstream = login.sources.some(({ kind }) => kind === 'upstream-login')
  const signedIn = named(
    'LoginAnswer',
    success(named('LoginResult', loginResultSchema), loginBeside(usual)).answer
  )
  add(endpoints.login.path, ['POST'], {
    name: 'login',
    summary: 'Sign in',
    access: 'public',
    request: named('LoginRequest', loginRequestSchema(login.fields)),
    answer:
      login.refusedStatus === 200
        ? { anyOf: [signedIn, named('LoginRefused', loginRefusedSchema(usual))] }
        : signedIn,
    facts: { endpoint: 'login', asksUpstream }
  })
  add(endpoints.logout.path, ['GET', 'POST'], {
    name: 'logout',
    summary: 'Sign out; also without a session',
    access: 'public',
    ...success({ type: 'object' }),
    facts: { endpoint: 'logout' }
  })

  const { profile } = endpoints
  const fromUpstream = profile.from === 'upstream' || Object.keys(profile.parts).length > 0
  const knownUser = describeShape(shapes[profile.shape ?? ''] ?? [], shapes).data['properties']
  const user =
    contracted('profile', 'CurrentUser') ??
    named(
      'CurrentUser',
      currentUserSchema(isRecord(knownUser) ? (knownUser as Record<string, JsonSchema>) : {})
    )
  add(profile.path, ['GET'], {
    name: 'profile',
    summary: 'The current user',
    access: 'session',
    ...success(user, missingOf(profile), []),
    failureBeside: {
      401: {
        data: { type: 'object', properties: { isLogin: { const: false } }, required: ['isLogin'] }
      }
    },
    facts: {
      endpoint: 'profile',
      asksUpstream: fromUpstream,
      namesSource: fromUpstream && namesSource(profile),
      isRead: fromUpstream,
      isStrict: profile.contract?.mode === 'strict'
    },
    upstreamErrors: fromUpstream ? 'enveloped' : 'none'
  })

  const current = named('Session', sessionSchema)
  const facts: Facts = { endpoint: 'session' }
  const below = (path: string) => endpoints.session.path + path
  add(below(''), ['GET'], {
    name: 'session',
    summary: 'What is left of the session; asking does not extend it',
    access: 'session',
    ...success(current),
    facts
  })
  add(below('/extend'), ['POST'], {
    name: 'session',
    summary: 'Extend the session',
    access: 'session',
    ...success(current),
    facts
  })
  add(below('/list'), ['GET'], {
    name: 'session',
    summary: 'The user’s own sessions',
    access: 'session',
    ...success(
      { type: 'array', items: named('ListedSession', listedSessionSchema) },
      { total: { type: 'integer' } }
    ),
    facts
  })
  add(below('/close'), ['POST'], {
    name: 'session',
    summary: 'Close one of them, the others, or all',
    access: 'session',
    request: closeRequestSchema,
    ...success(closedSchema),
    facts
  })

  for (const [name, route] of Object.entries(routes)) {
    const dialect = route.dialect ?? usual
    if (dialect !== usual) schemas[envelopeName('Failure', dialect, usual)] = failureSchema(dialect)
    const shaped = describeShape(shapes[route.shape ?? ''] ?? [], shapes)
    const isRead = route.shape !== undefined || Object.keys(route.parts).length > 0
    const dataName = freeName(`${pascal(name)}Data`, given => Object.hasOwn(schemas, given))
    const data =
      contracted(name, dataName) ??
      (Object.keys(shaped.data).length === 0 ? {} : named(dataName, shaped.data))
    add(route.path, route.methods as Method[], {
      name,
      summary: `The route ${name}`,
      access: route.access,
      dialect,
      errorsAreOk: (route.errorStatus ?? envelope.errorStatus) === 'ok',
      ...((isRead || contracts[name] !== undefined) &&
        (shaped.isWrapped
          ? success(
              data,
              { ...shaped.beside, ...missingOf(route) },
              [...shaped.requiredBeside],
              dialect
            )
          : { answer: data })),
      facts: {
        asksUpstream: true,
        namesSource: namesSource(route),
        isRead,
        isStrict: route.contract?.mode === 'strict'
      },
      upstreamErrors: isRead ? 'enveloped' : 'plain'
    })
  }
  return { operations, schemas }
}

/** The member that names missing parts, where a part may be missing. */
function missingOf({
  parts,
  missing
}: Pick<RouteConfig, 'parts' | 'missing'>): Record<string, JsonSchema> {
  return Object.values(parts).some(({ required }) => !required)
    ? {
        [missing]: {
          type: 'array',
          items: { type: 'string' },
          description: 'The parts of the answer that are missing; absent where none is.'
        }
      }
    : {}
}

/** With a number where it is taken: `a-b` and `a--b` would be one name. */
export function freeName(name: string, isTaken: (name: string) => boolean): string {
  let found = name
  for (let number = 2; isTaken(found); number++) found = `${name}${number}`
  return found
}

/** The codes of an operation by the status that they have. */
export function errorsByStatus(
  errors: readonly ErrorCode[]
): Array<readonly [status: number, codes: readonly ErrorCode[]]> {
  const found = new Map<number, ErrorCode[]>()
  for (const code of errors)
    found.set(errorKinds[code].status, [...(found.get(errorKinds[code].status) ?? []), code])
  return [...found].toSorted(([a], [b]) => a - b)
}
