/**
 * The current user with the member names of both families of console, each filled from whichever
 * the back-end has.
 */
import { isRawNumber } from '../json/values.ts'
import type { Identity } from '../session/record.ts'

type User = Record<string, unknown>

const isText = (value: unknown): value is string => typeof value === 'string' && value !== ''

function idText(value: unknown): string | undefined {
  if (isRawNumber(value)) return value.rawJSON
  if (typeof value === 'number') return String(value)
  return isText(value) ? value : undefined
}

/** Converts between `admin` and `Admin`. A word in another case (`ORDER_READ`) stays as it is. */
const asRole = (access: string) =>
  /^[a-z]+$/.test(access) ? access.charAt(0).toUpperCase() + access.slice(1) : access
const asAccess = (role: string) => (/^[A-Z][a-z]*$/.test(role) ? role.toLowerCase() : role)

/**
 * Fills missing members from the session's identity: a console without `username` never stops
 * loading.
 * @param profile the user as the back-end or the credential source describes it
 */
export function fillCurrentUser(profile: unknown, identity: Identity): User {
  const user: User =
    typeof profile === 'object' && profile !== null && !Array.isArray(profile) ? { ...profile } : {}
  const id = idText(user['userid']) ?? idText(user['id']) ?? identity.id
  const username = isText(user['username']) ? user['username'] : identity.username
  const access = accessOf(user, identity)
  const role = isText(user['role']) ? user['role'] : asRole(access)
  return {
    ...user,
    id: idText(user['id']) === undefined ? id : user['id'],
    userid: id,
    username,
    name: isText(user['name']) ? user['name'] : identity.name,
    avatar: typeof user['avatar'] === 'string' ? user['avatar'] : '',
    access,
    role
  }
}

function accessOf({ access, role }: User, identity: Identity): string {
  if (isText(access)) return access
  return isText(role) ? asAccess(role) : authorityOf(identity)
}

/**
 * The authority that a console's menus check: `admin` where it is among the roles, else the first
 * role, else `user`.
 */
export function authorityOf(identity: Identity): string {
  const role = mainRoleOf(identity)
  if (role === '') return 'user'
  return isAdmin(role) ? 'admin' : role
}

/** The administrator's role where it is among the roles, else the first one; '' without any. */
export function mainRoleOf({ roles }: Identity): string {
  return roles.find(isAdmin) ?? roles[0] ?? ''
}

function isAdmin(role: string): boolean {
  return role.toLowerCase() === 'admin'
}
