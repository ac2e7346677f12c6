/** Finds members of a response by their names: what it tells are paths and codes, no other values. */
import { isRawNumber, isRecord, type Json, textOf } from '../../json/values.ts'

interface Member {
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
const isToken = (value: Json) => typeof value === 'string' && /^[\x20-\x7e]{8,}$/.test(value)
const isRows = (value: Json) => Array.isArray(value) && value.every(isRecord)
const isCount = (value: Json) => /^\d{1,15}$/.test(textOf(value) ?? '')
/** `OK`, `failed`, `E1001`, `NOT_SIGNED_IN`: other texts of such a name are data. */
const codeTexts = [/^(ok|success|fail(ed|ure)?|error|true|false|[a-z]?\d{1,6})$/i, /^[A-Z_]{2,40}$/]
const isCode = (value: Json) =>
  typeof value === 'boolean' ||
  Number.isSafeInteger(value) ||
  (typeof value === 'string' && codeTexts.some(each => each.test(value)))

/** The members that `init` looks for: their usual names, the best first, and which values fit. */
const kinds = {
  // A flag says the same everywhere; codes of success may differ from call to call.
  code: [
    'success ok code statuscode errno errcode errorcode ret retcode status state error',
    isCode
  ],
  message: [
    'message msg errormessage errormsg errmessage errmsg errordescription ' +
      'detail text desc description info reason error title',
    isText
  ],
  token: [
    'accesstoken authtoken idtoken jwt jwttoken token tokenvalue access ' +
      'usertoken apitoken sessiontoken bearertoken key sessionid sid ticket',
    isToken
  ],
  // In the place of an object with it.
  bareToken: ['data result', value => isToken(value) && /^\S{16,}$/.test(value as string)],
  csrf: ['csrftoken xsrftoken csrf', isToken],
  refreshToken: ['refreshtoken refresh', isToken],
  id: ['userid uid id pk uuid sub documentid guid', isScalar],
  login: ['username loginname account accountname login email mail', isText],
  name: ['nickname displayname realname fullname name firstname', isText],
  roles: [
    'roles role rolelist rolekeys rolekey rolecodes rolecode rolenames rolename ' +
      'authorities authority groups',
    value => roleIn(value) !== undefined
  ],
  role: ['rolekey key rolecode code rolevalue value rolename authorityname name type', isScalar],
  rows: [
    'rows records list items results result content data docs entries elements value ' +
      '*list *rows *items *records',
    isRows
  ],
  total: [
    'total totalcount totalelements totalitems totalrows totalnum totalrecords ' +
      'totalsize totalrow totaldocs count itemcount filtercount rowcount',
    isCount
  ],
  data: ['data result content payload body value response', isRecord]
} satisfies Record<string, readonly [names: string, fits: (value: Json) => boolean]>

function isNamed(name: string, pattern: string): boolean {
  const plain = name.toLowerCase().replaceAll(/[_$]/g, '')
  return pattern.startsWith('*') ? plain.endsWith(pattern.slice(1)) : plain === pattern
}

export function find(body: Json, kind: keyof typeof kinds, depth?: number): Member | undefined {
  const [patterns, fits] = kinds[kind]
  const members = membersOf(body, depth).filter(({ value }) => fits(value))
  const firstOf = (pattern: string) => members.find(({ name }) => isNamed(name, pattern))
  return patterns
    .split(' ')
    .map(firstOf)
    .find(match => match !== undefined)
}

const messageName = /^(message|msg|errorMessage)$/

export function codeOf(body: Json) {
  const member = find(body, 'code', 1)
  return member && { path: member.path, value: member.value as string | number | boolean }
}

/** The test for this code, as config has it. */
export function codeTest(code: ReturnType<typeof codeOf>) {
  return code && { path: code.path, in: [code.value] }
}

/** The code of an envelope. A member that is named so, such as the state of an order, may be data. */
export function envelopeCodeOf(body: Json) {
  const code = codeOf(body)
  const hasMessage = membersOf(body, 1).some(({ name }) => messageName.test(name))
  if (typeof code?.value === 'boolean' || hasMessage || find(body, 'data', 1)) return code
  const isState = typeof code?.value === 'number' && /^stat/i.test(code.path)
  return isState || !find(body, 'rows', 1) ? undefined : code
}

/** The text for people in the body of an error, which may be a list of errors or of texts. */
export function messageOf(body: Json): string | undefined {
  const own = find(body, 'message')
  if (own !== undefined) return own.path
  for (const { path, value } of membersOf(body, 1)) {
    const [first] = Array.isArray(value) ? (value as Json[]) : []
    const inner = isText(first) ? '' : find(first, 'message')?.path
    if (inner !== undefined) return below(path, '0', inner)
  }
  return undefined
}

/** The profile is stored in the session, and the console gets it: it must hold no credential. */
const secretName = /token|password|passwd|secret|salt|hash|credential/i

/**
 * In the object with the typed name, else one named as a user is, else one with an id and a name.
 * @param wholeName of what is not in an object
 */
export function userOf(body: Json, username: string, wholeName = '') {
  const whole = { path: '', name: wholeName, value: body }
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
    // Another one than was typed would not be the name that operators know.
    username: at(user.typed),
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

interface Seen {
  readonly body?: Json
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
}

const totalHeaders =
  'x-total-count x-total x-wp-total x-pagination-total-count content-range'.split(' ')

/** How a response says success, and the operations that make `{ rows, total }` of it. */
export function shapeOf({ body, headers }: Seen, messageOfErrors?: string) {
  const code = envelopeCodeOf(body)
  const member = membersOf(body, 1).find(({ name }) => messageName.test(name))
  const message = member?.path ?? messageOfErrors
  const steps: object[] = code ? [{ status: { path: code.path, ok: [code.value], message } }] : []
  if (Array.isArray(body)) {
    const countHeader = totalHeaders.find(name => /\d$/.test(String(headers[name])))
    const found = `a bare list${countHeader ? `, total in the header ${countHeader}` : ''}`
    return { isList: true, steps: [{ nest: { as: 'rows', count: 'total', countHeader } }], found }
  }
  const total = find(body, 'total')?.path
  const unnamed = total && membersOf(body).find(({ value }) => isRows(value))
  const rows = find(body, 'rows') ?? (unnamed || undefined)
  if (rows === undefined) {
    const data = code && find(body, 'data', 1)?.path
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
