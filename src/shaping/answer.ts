/** Answers that config writes. What the session fills in is never text that is expanded twice. */
import {
  type AnswerConfig,
  placeholderOf,
  type SessionName,
  sessionNameOf
} from '../config/schema/answer.ts'
import type { Config } from '../config/schema/config.ts'
import {
  isRawNumber,
  isRecord,
  type Json,
  type JsonRecord,
  put,
  textOf,
  valueAt
} from '../json/values.ts'
import { secondsLeft } from '../session/describe.ts'
import type { Identity, Session } from '../session/types.ts'
import { wallTime } from '../steady-clock.ts'

/** The session that a template reads. */
export interface AnswerFacts {
  readonly session: Session
  /** Its end unless it is used. */
  readonly idleEnd: number
  readonly absoluteEnd: number
  /** Stands for `{profile}`; the profile of sign-in without it. */
  readonly profile?: unknown
}

const readers: Readonly<Record<SessionName, (facts: AnswerFacts, config: Config) => Json>> = {
  id: ({ session }) => session.identity.id,
  username: ({ session }) => session.identity.username,
  name: ({ session }) => session.identity.name,
  roles: ({ session }) => session.identity.roles,
  role: ({ session }) => mainRoleOf(session.identity),
  access: ({ session }) => authorityOf(session.identity),
  permissions: ({ session }, { routes }) =>
    permissionsOf(session.identity.roles, routes.permissions),
  profile: ({ session, profile = session.identity.profile }) => profile,
  token: (_facts, { gateway }) => gateway.envelope.inertToken,
  refreshToken: (_facts, { gateway }) => gateway.envelope.inertToken,
  issuedAt: ({ session }) => session.createdAt,
  idleEndsAt: ({ idleEnd, absoluteEnd }) => wallTime(Math.min(idleEnd, absoluteEnd)),
  absoluteEndsAt: ({ absoluteEnd }) => wallTime(absoluteEnd),
  expiresIn: ({ absoluteEnd }) => secondsLeft(absoluteEnd)
}

export function createAnswer(
  config: Config,
  { json = null, byRole = {}, inEnvelope = 'data' }: AnswerConfig
) {
  return {
    placement: inEnvelope,
    /** The value; without facts where nobody is signed in, and config has no names of a session. */
    render: (facts?: AnswerFacts): Json => {
      const roles = facts?.session.identity.roles ?? []
      const role = Object.keys(byRole).find(each => roles.includes(each))
      const template = role === undefined ? json : byRole[role]
      return fill(template, name => readers[name](facts as AnswerFacts, config))
    }
  }
}

/** With `userNames` alone. What the session lacks is left out: null could be any tenant. */
export function fillUser(config: Config, template: Json, session: Session): Json {
  const facts = { session } as AnswerFacts
  return fill(template, name => readers[name](facts, config), true)
}

function fill(template: Json, read: (name: SessionName) => Json, leavesOut = false): Json {
  if (Array.isArray(template)) return template.map(item => fill(item, read, leavesOut))
  if (isRecord(template)) {
    const filled: JsonRecord = {}
    for (const [name, member] of Object.entries(template)) {
      const value = fill(member, read, leavesOut)
      if (value !== null || !leavesOut) put(filled, name, value)
    }
    return filled
  }
  const placeholder = placeholderOf(template)
  const reference = placeholder === undefined ? undefined : sessionNameOf(placeholder)
  return reference === undefined ? template : valueAt(read(reference.name), reference.path)
}

/** The permissions of all roles, in the order of the roles, each once. */
function permissionsOf(
  roles: readonly string[],
  permissions: Config['routes']['permissions']
): string[] {
  const all = roles.flatMap(role => (Object.hasOwn(permissions, role) ? permissions[role] : []))
  return [...new Set(all as string[])]
}

const filledText = (value: unknown) =>
  typeof value === 'string' && value !== '' ? value : undefined
const idText = (value: unknown) =>
  typeof value === 'number' || isRawNumber(value) ? textOf(value) : filledText(value)

/** Converts between `admin` and `Admin`. A word in another case (`ORDER_READ`) stays as it is. */
const asRole = (access: string) =>
  /^[a-z]+$/.test(access) ? access.charAt(0).toUpperCase() + access.slice(1) : access
const asAccess = (role: string | undefined) =>
  role !== undefined && /^[A-Z][a-z]*$/.test(role) ? role.toLowerCase() : role

/** From the session's identity: a console without `username` never stops loading. */
export function fillCurrentUser(profile: unknown, identity: Identity): JsonRecord {
  const user = isRecord(profile) ? profile : {}
  const userid = idText(user['userid']) ?? idText(user['id']) ?? identity.id
  const role = filledText(user['role'])
  const access = filledText(user['access']) ?? asAccess(role) ?? authorityOf(identity)
  return {
    ...user,
    id: idText(user['id']) === undefined ? userid : user['id'],
    userid,
    username: filledText(user['username']) ?? identity.username,
    name: filledText(user['name']) ?? identity.name,
    avatar: typeof user['avatar'] === 'string' ? user['avatar'] : '',
    access,
    role: role ?? asRole(access)
  }
}

/** What menus check: `admin` where it is among the roles, else the first role, else `user`. */
export function authorityOf(identity: Identity): string {
  const role = mainRoleOf(identity)
  if (role === '') return 'user'
  return isAdmin(role) ? 'admin' : role
}

/** The administrator's role where it is among the roles, else the first one; '' without any. */
function mainRoleOf({ roles }: Identity): string {
  return roles.find(isAdmin) ?? roles[0] ?? ''
}

function isAdmin(role: string): boolean {
  return role.toLowerCase() === 'admin'
}
