/** Finds the paths of the token and the user in a response. */
import { isRawNumber, isRecord, type Json, valueAt } from '../../json/values.ts'
import {
  below,
  directMembers,
  firstNamed,
  isText,
  type Member,
  membersOf,
  parentOf
} from './paths.ts'

export interface TokenPaths {
  readonly token: string
  readonly refreshToken?: string
  readonly expires?: { readonly path: string; readonly as: ExpiryUnit }
}

type ExpiryUnit = 'seconds' | 'milliseconds' | 'epoch-seconds' | 'epoch-milliseconds' | 'date'

export interface UserPaths {
  readonly id: string
  readonly username?: string
  readonly name?: string
  readonly roles?: string
  readonly profile?: string
}

const tokenNames = [
  /^(access_?token|auth_?token|id_?token|jwt(_?token)?)$/i,
  /^(token|token_?value)$/i,
  /^access$/i,
  /^(?!refresh)\w*token$/i,
  /^(key|session_?id|ticket)$/i
]
const refreshNames = [/^refresh_?token$/i, /^refresh$/i]
const expiryNames = [/^((access_?)?token_?)?expire[sd]?(_?(in|at|time|date|on))?$/i, /^expiration/i]
const minToken = 8

/** The paths of the tokens; undefined for a response without one. */
export function tokenPathsOf(body: Json): TokenPaths | undefined {
  const members = membersOf(body)
  const isToken = (value: Json) => isText(value) && value.length >= minToken
  const token = firstNamed(members, tokenNames, isToken)
  if (token === undefined) return undefined
  const refreshToken = firstNamed(members, refreshNames, isToken)
  const expiry = firstNamed(members, expiryNames, value => unitOf(value) !== undefined)
  const unit = unitOf(expiry?.value)
  return {
    token: token.path,
    ...(refreshToken !== undefined && { refreshToken: refreshToken.path }),
    ...(expiry !== undefined && unit !== undefined && { expires: { path: expiry.path, as: unit } })
  }
}

/** A month and more in seconds is rare; in milliseconds it is less than an hour. */
const maxSeconds = 3_000_000

function unitOf(value: Json): ExpiryUnit | undefined {
  if (typeof value === 'string' && value !== '') {
    const isDate = !/^\d+$/.test(value) && !Number.isNaN(Date.parse(value))
    return isDate ? 'date' : unitOf(Number(value))
  }
  if (typeof value !== 'number' || !(value > 0)) return undefined
  if (value > 1e11) return 'epoch-milliseconds'
  if (value > 1e9) return 'epoch-seconds'
  return value > maxSeconds ? 'milliseconds' : 'seconds'
}

const idNames = [/^(user_?id|uid)$/i, /^(id|_id|pk)$/i, /^(uuid|sub|document_?id|guid)$/i]
const usernameNames = [/^(user_?name|login_?name|account(_?name)?)$/i, /^(login|email|mail)$/i]
const nameNames = [
  /^(nick_?name|display_?name|real_?name|full_?name)$/i,
  /^name$/i,
  /^first_?name$/i
]
const roleNames = [/^roles?(_?(keys?|codes?|names?|values?))?$/i, /^(authorities|groups)$/i]
const roleMembers = [
  /^(role_?)?(key|code|value)$/i,
  /^(role_?)?name$/i,
  /^type$/i,
  /^(role_?)?id$/i
]
const userHolder = /user|account|profile|member|admin|^me$/i
const secretName = /token|password|passwd|secret|salt|hash|credential/i
const minScore = 4

/** @param username as typed at the sign-in */
export function userPathsOf(body: Json, username: string): UserPaths | undefined {
  const members = membersOf(body)
  const holders = [
    { path: '', name: '', value: body },
    ...members.filter(({ value }) => isRecord(value))
  ]
  const [best] = holders
    .map(holder => ({ holder, score: scoreOf(holder, username) }))
    .filter(({ score }) => score >= minScore)
    .toSorted((left, right) => right.score - left.score)
  return best === undefined ? undefined : pathsIn(best.holder, body, username)
}

type Holder = Pick<Member, 'path' | 'name' | 'value'>

function scoreOf({ name, value }: Holder, username: string): number {
  const direct = directMembers(value)
  const has = (patterns: readonly RegExp[]) =>
    firstNamed(direct, patterns, isScalar) === undefined ? 0 : 1
  const isTyped = direct.some(member => member.value === username)
  if (!isTyped && has(idNames) === 0) return 0
  return (
    (isTyped ? 4 : 0) +
    has(idNames) * 2 +
    has(nameNames) +
    has(usernameNames) +
    (userHolder.test(name) ? 1 : 0)
  )
}

function pathsIn({ path, value }: Holder, body: Json, username: string): UserPaths | undefined {
  const direct = directMembers(value)
  const usernameMember =
    firstNamed(direct, usernameNames, each => each === username) ??
    direct.find(member => member.value === username) ??
    firstNamed(direct, usernameNames, isText)
  const id = firstNamed(direct, idNames, isScalar) ?? usernameMember
  if (id === undefined) return undefined
  const name = firstNamed(direct, nameNames, isText)
  const roles = rolesPathOf(body, path)
  const at = (member: Member) => below(path, member.path)
  return {
    id: at(id),
    ...(usernameMember !== undefined && { username: at(usernameMember) }),
    ...(name !== undefined && name !== usernameMember && { name: at(name) }),
    ...(roles !== undefined && { roles }),
    ...(path !== '' && !hasSecret(value) && { profile: path })
  }
}

/** In the user's object, or else in those around it. */
function rolesPathOf(body: Json, path: string): string | undefined {
  const direct = directMembers(path === '' ? body : valueAt(body, path.split('.')))
  for (const pattern of roleNames) {
    for (const { name, value } of direct) {
      const inner = pattern.test(name) ? roleIn(value) : undefined
      if (inner !== undefined) return below(path, inner === '' ? name : `${name}.${inner}`)
    }
  }
  return path === '' ? undefined : rolesPathOf(body, parentOf(path))
}

/** The path of the role within a value: empty for a text or a list of texts. */
function roleIn(role: Json): string | undefined {
  if (isScalar(role)) return ''
  const items = Array.isArray(role) ? (role as Json[]) : [role]
  if (items.length > 0 && items.every(isText)) return ''
  return firstNamed(directMembers(items[0]), roleMembers, isScalar)?.name
}

function isScalar(value: Json): boolean {
  return isText(value) || typeof value === 'number' || isRawNumber(value)
}

/** A profile is stored in the session, and the console gets it: it must hold no credential. */
function hasSecret(value: Json): boolean {
  return membersOf(value).some(({ name }) => secretName.test(name))
}
