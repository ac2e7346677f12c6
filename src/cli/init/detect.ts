/** Finds members of a response by their names: what it tells are paths and codes, no other values. */
import { isRawNumber, isRecord, type Json, textOf } from '../../json/values.ts'

interface Member {
  /** Dotted, such as `result.user.uid`; empty for the whole. */
  readonly path: string
  readonly name: string
  readonly value: Json
}

const maxDepth = 5
const maxMembers = 5000
/** A name that programs use. Others, such as e-mail addresses and ids, are data. */
const memberName = /^[A-Za-z_$@][\w$:-]{0,63}$/
const dataName = /^[0-9a-f]{8}-[0-9a-f-]{27}$|^[0-9a-f]{16,}$|\d{4}/i

const below = (...names: readonly string[]) => names.filter(name => name !== '').join('.')

/** All members of objects in a value, the outer first; lists are not entered. */
export function membersOf(value: Json, depth = maxDepth): Member[] {
  const holders = [{ path: '', name: '', value, depth: 0 }]
  for (const holder of holders) {
    if (!isRecord(holder.value) || holder.depth === depth) continue
    for (const [name, inner] of Object.entries(holder.value)) {
      if (!memberName.test(name) || dataName.test(name) || holders.length > maxMembers) continue
      const path = below(holder.path, name)
      holders.push({ path, name, value: inner, depth: holder.depth + 1 })
    }
  }
  return holders.slice(1)
}

const isText = (value: Json) => typeof value === 'string' && value !== ''
const isScalar = (value: Json) => isText(value) || typeof value === 'number' || isRawNumber(value)
const isToken = (value: Json) => isText(value) && String(value).length >= 8
const isRows = (value: Json) => Array.isArray(value) && value.every(isRecord)
const isCount = (value: Json) => /^\d{1,15}$/.test(textOf(value) ?? '')
/** A code is short: longer texts are data. */
const isCode = (value: Json) =>
  typeof value === 'boolean' ||
  Number.isSafeInteger(value) ||
  (typeof value === 'string' && /^[A-Z0-9_-]{1,16}$/i.test(value))

/** The members that `init` looks for: their usual names, the best first, and which values fit. */
const kinds = {
  // Codes of success may differ from call to call; a flag says the same everywhere.
  flag: [[/^(success|ok)$/i], value => typeof value === 'boolean'],
  code: [[/^(code|status_?code|err_?no|err(or)?_?code|ret(_?code)?)$/i], isCode],
  // Other texts of such a name are data.
  status: [
    [/^(status|state|error)$/i],
    value => isCode(value) && /^(ok|success|fail|error|true|false|\d{1,6})$/i.test(String(value))
  ],
  message: [
    [
      /^(message|msg|err(or)?_?(msg|message)|error_description)$/i,
      /^(detail|text|desc|description|info|reason)$/i,
      /^(error|title)$/i
    ],
    isText
  ],
  token: [
    [
      /^(access_?token|auth_?token|id_?token|jwt(_?token)?)$/i,
      /^(token|token_?value|access)$/i,
      /^(?!refresh)\w*token$/i,
      /^(key|session_?id|ticket)$/i
    ],
    isToken
  ],
  refreshToken: [[/^refresh(_?token)?$/i], isToken],
  id: [[/^(user_?id|uid)$/i, /^(id|_id|pk)$/i, /^(uuid|sub|document_?id|guid)$/i], isScalar],
  login: [[/^(user_?name|login_?name|account(_?name)?)$/i, /^(login|email|mail)$/i], isText],
  name: [
    [/^(nick_?name|display_?name|real_?name|full_?name)$/i, /^name$/i, /^first_?name$/i],
    isText
  ],
  roles: [
    [/^roles?(_?(keys?|codes?|names?|values?))?$/i, /^(authority|authorities|groups)$/i],
    value => roleIn(value) !== undefined
  ],
  role: [[/^(role_?)?(key|code|value)$/i, /^((role|authority)_?)?name$/i, /^type$/i], isScalar],
  rows: [
    [
      /^(rows|records|list|items|results?|content|data|entries|elements|value)$/i,
      /(list|rows|items|records)$/i
    ],
    isRows
  ],
  total: [
    [
      /^total(_?(count|elements|items|size|rows?|num|records))?$/i,
      /^(count|item_?count|filter_?count|row_?count)$/i
    ],
    isCount
  ],
  data: [[/^(data|result|content|payload|body|value|response)$/i], isRecord]
} satisfies Record<string, readonly [names: readonly RegExp[], fits: (value: Json) => boolean]>

export function find(body: Json, kind: keyof typeof kinds, depth?: number): Member | undefined {
  const [names, fits] = kinds[kind]
  const members = membersOf(body, depth).filter(({ value }) => fits(value))
  for (const pattern of names) {
    const match = members.find(({ name }) => pattern.test(name))
    if (match !== undefined) return match
  }
  return undefined
}

type Scalar = string | number | boolean

/** The member that tells success or failure, and its value. */
export function codeOf(body: Json): { readonly path: string; readonly value: Scalar } | undefined {
  const { path, value } =
    find(body, 'flag', 1) ?? find(body, 'code', 1) ?? find(body, 'status', 1) ?? {}
  return path === undefined ? undefined : { path, value: value as Scalar }
}

/** The text for people in the body of an error, which may be a list of errors. */
export function messageOf(body: Json): string | undefined {
  const list = membersOf(body, 1).find(({ value }) => isRows(value))
  const [first] = (list?.value ?? []) as Json[]
  const inner = find(first, 'message')
  return find(body, 'message')?.path ?? (list && inner && `${list.path}.0.${inner.path}`)
}

/** The profile is stored in the session, and the console gets it: it must hold no credential. */
const secretName = /token|password|passwd|secret|salt|hash|credential/i

/**
 * The paths of the user in a response: in the object that has the typed name, else in one that is
 * named as a user is, else in one with an id and a name.
 */
export function userOf(body: Json, username: string) {
  const whole = { path: '', name: '', value: body }
  const holders = [whole, ...membersOf(body)].map(({ path, name, value }) => {
    const typed = membersOf(value, 1).find(each => each.value === username)
    const login = typed ?? find(value, 'login', 1)
    return { path, name, value, typed, login, id: find(value, 'id', 1) ?? login }
  })
  const user =
    holders.find(({ typed }) => typed !== undefined) ??
    holders.find(({ name, id }) => /user|account|profile|member|^me$/i.test(name) && id) ??
    holders.find(({ login, id }) => login !== undefined && id !== login)
  if (user?.id === undefined) return undefined
  const { path, value, id, login } = user
  const at = (member: Member | undefined) => member && below(path, member.path)
  const name = find(value, 'name', 1)
  const own = find(value, 'roles', 1)
  const roles = own ?? find(body, 'roles')
  const isProfile = path !== '' && !membersOf(value).some(each => secretName.test(each.name))
  return {
    id: below(path, id.path),
    username: at(login),
    name: name === login ? undefined : at(name),
    roles: roles && below(own ? path : '', roles.path, roleIn(roles.value) ?? ''),
    profile: isProfile ? path : undefined
  }
}

/** The path of the role within a value: empty for a text or a list of texts. */
function roleIn(role: Json): string | undefined {
  const items = Array.isArray(role) ? (role as Json[]) : [role]
  if (items.length > 0 && items.every(isScalar)) return ''
  return find(items[0], 'role', 1)?.path
}

/**
 * Finds out how a response says success, and the operations that make `{ rows, total }` of it.
 * @param messageOfErrors where other responses have their message
 */
export function shapeOf(body: Json, messageOfErrors?: string) {
  const code = codeOf(body)
  const member = membersOf(body, 1).find(({ name }) => /^(message|msg|errorMessage)$/.test(name))
  const message = member?.path ?? messageOfErrors
  // A single member named so is data; beside a message or data it is an envelope.
  const hasEnvelope = code && (message ?? find(body, 'data', 1) ?? find(body, 'rows', 1))
  const status = { path: code?.path, ok: [code?.value], message }
  const steps: object[] = hasEnvelope ? [{ status }] : []
  if (Array.isArray(body)) {
    return { isList: true, steps: [{ nest: { as: 'rows', count: 'total' } }], found: 'a bare list' }
  }
  const total = find(body, 'total')?.path
  const unnamed = total && membersOf(body).find(({ value }) => isRows(value))
  const rows = find(body, 'rows') ?? (unnamed || undefined)
  if (rows === undefined) {
    const data = hasEnvelope && find(body, 'data', 1)?.path
    if (data) steps.push({ unwrap: data })
    return { isList: false, steps, found: `a single value${data ? ` at ${data}` : ''}` }
  }
  const moves = Object.entries({ [rows.path]: 'rows', [total ?? 'total']: 'total' })
  const move = Object.fromEntries(moves.filter(([from, to]) => from !== to))
  if (Object.keys(move).length > 0) steps.push({ move })
  steps.push({ pick: ['rows', 'total'] })
  return {
    isList: true,
    steps,
    found: `rows at ${rows.path}, ${total ? `total at ${total}` : 'no total'}`
  }
}
