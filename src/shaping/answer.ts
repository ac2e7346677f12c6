/**
 * Answers that config writes: templates, compiled when the app is built. What the session fills in
 * is a value, never text of a template, so nothing is expanded twice.
 */
import {
  type AnswerConfig,
  placeholderOf,
  type SessionName,
  sessionNameOf
} from '../config/schema/answer.ts'
import type { Config } from '../config/schema/config.ts'
import { isRecord, type Json, type JsonRecord, put, valueAt } from '../json/values.ts'
import type { Session } from '../session/record.ts'
import { authorityOf, mainRoleOf } from './current-user.ts'
import type { Placement } from './envelope.ts'

/** The session that a template reads. */
export interface AnswerFacts {
  readonly session: Session
  /** Its end unless it is used. */
  readonly idleEnd: number
  /** By the clock of the sessions. */
  readonly now: number
  /** By how much the wall clock is ahead of it. */
  readonly aheadMs: number
  /** Stands for `{profile}`; the profile of sign-in without it. */
  readonly profile?: unknown
}

/** The settings behind names that no session holds. */
interface AnswerSettings {
  /** The value of `{token}` and `{refreshToken}`: it opens nothing. */
  readonly inertToken: string
  /** Of each role. */
  readonly permissions: Readonly<Record<string, readonly string[]>>
}

export interface Answer {
  readonly status: number
  readonly placement: Placement
  /** Whether the value is the same for every request. */
  readonly isConstant: boolean
  /** The value; facts are needed unless the answer is constant. */
  readonly render: (facts?: AnswerFacts) => Json
}

type Fill = (facts: AnswerFacts) => Json
/** A part of a template: a constant, or a function of the session. */
type Node = { readonly constant: Json } | { readonly fill: Fill }

const readers: Readonly<
  Record<SessionName, (facts: AnswerFacts, settings: AnswerSettings) => Json>
> = {
  id: ({ session }) => session.identity.id,
  username: ({ session }) => session.identity.username,
  name: ({ session }) => session.identity.name,
  roles: ({ session }) => session.identity.roles,
  role: ({ session }) => mainRoleOf(session.identity),
  access: ({ session }) => authorityOf(session.identity),
  permissions: ({ session }, { permissions }) => permissionsOf(session.identity.roles, permissions),
  profile: facts => (Object.hasOwn(facts, 'profile') ? facts.profile : profileOf(facts)),
  token: (_facts, { inertToken }) => inertToken,
  refreshToken: (_facts, { inertToken }) => inertToken,
  issuedAt: ({ session, aheadMs }) => session.createdAt + aheadMs,
  idleEndsAt: ({ session, idleEnd, aheadMs }) => Math.min(idleEnd, session.absoluteEnd) + aheadMs,
  absoluteEndsAt: ({ session, aheadMs }) => session.absoluteEnd + aheadMs,
  expiresIn: ({ session, now }) => Math.max(0, Math.floor((session.absoluteEnd - now) / 1000))
}

function profileOf({ session }: AnswerFacts): Json {
  return session.identity.profile
}

/** With the token and the permissions of the config. */
export function compileConfiguredAnswer({ gateway, routes }: Config, answer: AnswerConfig): Answer {
  const { inertToken } = gateway.envelope
  return compileAnswer(answer, { inertToken, permissions: routes.permissions })
}

export function compileAnswer(config: AnswerConfig, settings: AnswerSettings): Answer {
  const main = compileNode(config.json ?? null, settings)
  const byRole = Object.entries(config.byRole ?? {}).map(
    ([role, json]) => [role, fillOf(compileNode(json, settings))] as const
  )
  const fillMain = fillOf(main)
  const isConstant = 'constant' in main && byRole.length === 0
  return {
    status: config.status ?? 200,
    placement: config.inEnvelope ?? 'data',
    isConstant,
    render: facts => {
      if ('constant' in main && (facts === undefined || isConstant)) return main.constant
      if (facts === undefined) throw new Error('an answer with names of the session needs one')
      const { roles } = facts.session.identity
      const [, fill = fillMain] = byRole.find(([role]) => roles.includes(role)) ?? []
      return fill(facts)
    }
  }
}

function fillOf(node: Node): Fill {
  return 'fill' in node ? node.fill : () => node.constant
}

function compileNode(json: Json, settings: AnswerSettings): Node {
  if (Array.isArray(json)) {
    return compileMembers(
      json.map(item => compileNode(item, settings)),
      json,
      values => values
    )
  }
  if (isRecord(json)) {
    const names = Object.keys(json)
    return compileMembers(
      names.map(name => compileNode(json[name], settings)),
      json,
      values => recordOf(names, values)
    )
  }
  const placeholder = placeholderOf(json)
  const reference = placeholder === undefined ? undefined : sessionNameOf(placeholder)
  if (reference === undefined) return { constant: json }
  const read = readers[reference.name]
  const { path } = reference
  if (path.length === 0) return { fill: facts => read(facts, settings) }
  return { fill: facts => valueAt(read(facts, settings), path) }
}

/** A list or an object; it is constant where all its members are. */
function compileMembers(
  members: readonly Node[],
  constant: Json,
  build: (values: Json[]) => Json
): Node {
  if (members.every(member => 'constant' in member)) return { constant }
  const fills = members.map(fillOf)
  return { fill: facts => build(fills.map(fill => fill(facts))) }
}

function recordOf(names: readonly string[], values: readonly Json[]): JsonRecord {
  const record: JsonRecord = {}
  names.forEach((name, index) => put(record, name, values[index]))
  return record
}

/** The permissions of all roles, in the order of the roles, each once. */
function permissionsOf(
  roles: readonly string[],
  permissions: AnswerSettings['permissions']
): string[] {
  const all = roles.flatMap(role => (Object.hasOwn(permissions, role) ? permissions[role] : []))
  return [...new Set(all as string[])]
}
