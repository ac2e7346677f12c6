/** Public operations with their requests and responses: the source of OpenAPI and TypeScript. */
import { pathsOf } from '../config/schema/resolved.ts'
import type { JsonSchema } from '../contract/schema.ts'
import type { Config } from '../config/schema/config.ts'
import type { RouteConfig } from '../config/schema/routes.ts'
import { ownMember } from '../config/schema/visit.ts'
import type { ErrorCode } from '../errors.ts'
import {
  bareSchema,
  type Dialect,
  type EnvelopeSettings,
  type FailureFormat,
  failureFormatOf,
  failureSchema,
  flatOrNamedSchema,
  successSchema,
  unnamedSchema
} from './envelope-schemas.ts'
import { errorCodeSchema } from './own-responses.ts'
import { contractComponents, pascal } from './contract-components.ts'
import { errorsOf, type OperationFacts } from './error-codes.ts'
import { type ConfiguredStatus, configuredStatus } from './error-statuses.ts'

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

export interface Operation {
  /** The route's or endpoint's name, as in logs and limits. */
  readonly name: string
  readonly method: Method
  /** As in config, without the mount; `/*` at the end matches every path below. */
  readonly path: string
  readonly isAlias: boolean
  readonly summary: string
  readonly access: RouteConfig['access']
  readonly dialect: Dialect
  readonly request?: JsonSchema
  /** Of a success. */
  readonly status: number
  /** The whole body of a success; undefined for an upstream's body that is passed unchanged. */
  readonly answer?: JsonSchema
  /** The content of `answer`, if that is only an envelope. */
  readonly wrapped?: Wrapped
  /** Members of a failure beside the standard ones, by status. */
  readonly failureBeside?: Readonly<Record<number, JsonSchema>>
  readonly errors: readonly ErrorCode[]
  readonly failureFormat: FailureFormat
  /** Whether errors have the status 200, unless an entry of their code says otherwise. */
  readonly errorsAreOk: boolean
  readonly statusOf: ConfiguredStatus
  /** Whether it takes upgrades to WebSocket. */
  readonly takesUpgrades?: boolean
  /** The form of an upstream's own errors: unchanged (`plain`), or in the envelope. */
  readonly upstreamErrors: 'none' | 'plain' | 'enveloped'
}

interface Wrapped {
  readonly data: JsonSchema
  /** As an object with the members beside `data`. */
  readonly beside?: JsonSchema
}

export interface Description {
  readonly operations: readonly Operation[]
  /** By name; references are `#/components/schemas/NAME`. */
  readonly schemas: Readonly<Record<string, JsonSchema>>
}

export const reference = (name: string): JsonSchema => ({ $ref: `#/components/schemas/${name}` })
/** The envelope of the config's own dialect has the plain name. */
export const envelopeName = (
  kind: 'Success' | 'Failure',
  dialect: Dialect,
  usual: Dialect
): string => (dialect === usual ? kind : `${pascal(dialect)}${kind}`)

/** The facts that differ between operations. */
export type Facts = Partial<OperationFacts>

type OperationInput = Omit<
  Operation,
  | 'path'
  | 'method'
  | 'status'
  | 'isAlias'
  | 'dialect'
  | 'failureFormat'
  | 'errorsAreOk'
  | 'statusOf'
  | 'errors'
  | 'upstreamErrors'
> &
  Partial<Operation> & { readonly facts: Facts }

/** Members of a success beside `data`. */
interface Beside {
  readonly members?: Readonly<Record<string, JsonSchema>>
  /** All members by default. */
  readonly required?: readonly string[]
  /** The list of missing parts, which stands beside the value in any placement. */
  readonly missing?: Readonly<Record<string, JsonSchema>>
  /** The config's dialect by default. */
  readonly dialect?: Dialect
}

/** Collects the operations of a config, and the schemas that they refer to. */
export class DescriptionBuilder {
  readonly operations: Operation[] = []
  readonly schemas: Record<string, JsonSchema>
  readonly #config: Config

  constructor(config: Config) {
    this.#config = config
    this.schemas = {
      ErrorCode: errorCodeSchema,
      Failure: failureSchema(config)
    }
  }

  /** @returns a reference to the schema */
  addSchema(name: string, schema: JsonSchema): JsonSchema {
    this.schemas[name] = schema
    return reference(name)
  }

  /** @returns a reference to the schema of the route's contract; undefined without a contract */
  addContract(route: string, name: string): JsonSchema | undefined {
    const schema = ownMember(this.#config.contracts, route)
    if (schema === undefined) return undefined
    const taken = new Set([...Object.keys(this.schemas), name])
    const nameOf = (wanted: string) => {
      const free = freeName(wanted, other => taken.has(other))
      taken.add(free)
      return free
    }
    Object.assign(this.schemas, contractComponents(schema, name, nameOf))
    return reference(name)
  }

  /** The envelope around `data`. */
  success(
    data: JsonSchema,
    { members: standing = {}, required = Object.keys(standing), missing = {}, dialect }: Beside = {}
  ): Required<Pick<Operation, 'answer'>> & Pick<Operation, 'wrapped'> {
    const settings = this.#envelopeOf(dialect)
    const value = { data, type: this.#typeOf(data) }
    if (settings.dialect === 'problem') {
      const { answer } = this.bareSuccess(data, missing)
      return { answer, ...(answer === data && { wrapped: { data } }) }
    }
    const members = { ...standing, ...missing }
    const unnamed = unnamedSchema(settings, value, { members, required })
    if (unnamed !== undefined) return { answer: unnamed }
    const answer = successSchema(settings, data, { members, required })
    if (Object.keys(members).length === 0) return { answer, wrapped: { data } }
    const beside: JsonSchema = { type: 'object', properties: members, required }
    return { answer, wrapped: { data, beside } }
  }

  /** The type of a value, also where it is a reference to one of the schemas. */
  #typeOf({ $ref, type }: JsonSchema): unknown {
    const name = typeof $ref === 'string' ? $ref.replace('#/components/schemas/', '') : undefined
    return name === undefined ? type : this.schemas[name]?.['type']
  }

  /** The members of the value beside those of the envelope. */
  flatSuccess(
    data: JsonSchema,
    { dialect, missing = {} }: Pick<Beside, 'dialect' | 'missing'>
  ): Required<Pick<Operation, 'answer'>> {
    const settings = this.#envelopeOf(dialect)
    if (settings.dialect === 'problem') return this.bareSuccess(data, missing)
    const value = { data, type: this.#typeOf(data) }
    return { answer: flatOrNamedSchema(settings, value, { members: missing, required: [] }) }
  }

  /** The value as the whole body. */
  bareSuccess(
    data: JsonSchema,
    missing: Readonly<Record<string, JsonSchema>> = {}
  ): Required<Pick<Operation, 'answer'>> {
    return { answer: bareSchema({ data, type: this.#typeOf(data) }, missing) }
  }

  #envelopeOf(dialect: Dialect | undefined): EnvelopeSettings {
    const { envelope } = this.#config.gateway
    return { ...envelope, dialect: dialect ?? envelope.dialect }
  }

  /** Adds an operation for each method, at the path and at its aliases. */
  add(path: string, methods: readonly Method[], { facts, ...operation }: OperationInput): void {
    const { errorsAreOk = this.#config.gateway.envelope.errorStatus === 'ok' } = operation
    const envelope = this.#envelopeOf(operation.dialect)
    for (const [index, each] of pathsOf(this.#config.routes, path).entries()) {
      for (const method of methods) {
        this.operations.push({
          dialect: envelope.dialect,
          upstreamErrors: 'none',
          status: 200,
          ...operation,
          errorsAreOk,
          statusOf: configuredStatus(envelope, errorsAreOk),
          failureFormat: failureFormatOf(envelope),
          errors: this.#errorsOf(method, operation, facts),
          method,
          path: each,
          isAlias: index > 0
        })
      }
    }
  }

  #errorsOf(
    method: Method,
    { name, access }: Pick<Operation, 'name' | 'access'>,
    facts: Facts
  ): readonly ErrorCode[] {
    const {
      gateway: { login, session },
      limits
    } = this.#config
    return errorsOf({
      access,
      isUnsafe: method !== 'GET',
      takesUpgrades: false,
      asksUpstream: false,
      namesSource: false,
      isRead: false,
      isStrict: false,
      isBounded: Object.hasOwn(limits.inFlightPerRoute, name),
      refusesSignIn: login.refusedStatus !== 200,
      refusalKinds: [],
      refusesSessions: session.perUser.over === 'refuse',
      ...facts
    })
  }
}

/** The name, with a number if it is taken: `a-b` and `a--b` give the same name. */
export function freeName(name: string, isTaken: (name: string) => boolean): string {
  let candidate = name
  for (let number = 2; isTaken(candidate); number++) candidate = `${name}${number}`
  return candidate
}
