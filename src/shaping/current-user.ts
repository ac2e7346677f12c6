/**
 * The current user with the member names of both families of console, each filled from whichever
 * the back-end has.
 */
import { isRawNumber, isRecord, type JsonRecord, textOf } from '../json/values.ts'
import type { Identity } from '../session/types.ts'

const filledText = (value: unknown) =>
  typeof value === 'string' && value !== '' ? value : undefined
const idText = (value: unknown) =>
  typeof value === 'number' || isRawNumber(value) ? textOf(value) : filledText(value)

/** Converts between `admin` and `Admin`. A word in another case (`ORDER_READ`) stays as it is. */
const asRole = (access: string) =>
  /^[a-z]+$/.test(access) ? access.charAt(0).toUpperCase() + access.slice(1) : access
const asAccess = (role: string | undefined) =>
  role !== undefined && /^[A-Z][a-z]*$/.test(role) ? role.toLowerCase() : role

/**
 * Fills missing members from the session's identity: a console without `username` never stops
 * loading.
 * @param profile the user as the back-end or the credential source describes it
 */
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
