/** A sign-in at a directory: finds the entry, proves the password by a bind as it, reads its roles. */
import {
  type Client,
  EqualityFilter,
  OrFilter,
  PasswordPolicyControl,
  PasswordPolicyError,
  ResultCodeError
} from 'ldapts'
import { accountKey } from '../../session/types.ts'
import type { Refusal, RefusalKind, SignInResult } from '../credential-source.ts'
import type { LdapConfig } from '../../config/schema/login.ts'
import { type Server, withConnection } from './connection.ts'

type User = NonNullable<Awaited<ReturnType<typeof findUser>>>

/** Beyond it the sign-in fails: to leave some out could leave out a role. */
const maxGroups = 500
const groupName = 'cn'
/** A binary attribute of Active Directory, which is recognized in this spelling alone. */
const guid = 'objectGUID'

/**
 * RFC 4511 A.1: too many failures, no such object, no password, invalid credentials, disabled.
 * Other results do not judge the password.
 */
const refusing = new Set([19, 32, 48, 49, 53])

/**
 * Why Active Directory refuses a password that is right: the wrong time or machine, expired, disabled,
 * the account expired, to be changed. Of a lock (775) it tells for any password, so users do not see it.
 */
const activeDirectory: Readonly<Record<string, RefusalKind>> = {
  530: 'blocked',
  531: 'blocked',
  532: 'expired-password',
  533: 'blocked',
  701: 'blocked',
  773: 'expired-password'
}

interface Attempt {
  readonly username: string
  readonly password: string
  readonly onAmbiguous: (username: string) => void
}

/** A sign-in at one server. @throws Error where it does not judge the password */
export async function judge(
  directory: LdapConfig,
  server: Server,
  { username, password, onAmbiguous }: Attempt
): Promise<SignInResult> {
  const { base, groups } = directory
  return await withConnection(directory, server, async client => {
    const user = await findUser(client, directory, username, onAmbiguous)
    // A bind as nobody: unknown users take the same time.
    const refusal = await refusalOf(client, user?.dn ?? `cn=nobody,${base}`, password)
    if (user === undefined) return { vouched: false, isUnknown: true }
    if (refusal !== undefined) return refusal
    const roles = await rolesOf(client, directory, user)
    if (groups?.required === true && roles.length === 0) {
      return { vouched: false, isFinal: true, kind: 'blocked' }
    }
    return { vouched: true, identity: { ...user.identity, roles } }
  })
}

export async function lookUp(directory: LdapConfig, server: Server, username: string) {
  return await withConnection(directory, server, async client => {
    const user = await findUser(client, directory, username, () => {})
    return user && { ...user.identity, roles: await rolesOf(client, directory, user) }
  })
}

async function findUser(
  client: Client,
  { base, bind, user: { id: idAttribute, username: nameAttribute, name, profile } }: LdapConfig,
  typed: string,
  onAmbiguous: (username: string) => void
) {
  await client.bind(bind.dn, bind.password)
  const { searchEntries } = await client.search(base, {
    filter: new EqualityFilter({ attribute: nameAttribute, value: typed }),
    attributes: [nameAttribute, idAttribute, name, ...Object.values(profile)],
    explicitBufferAttributes: [guid],
    // With a limit of 1 a second one would not be seen.
    sizeLimit: 2
  })
  const [entry, another] = searchEntries
  if (another !== undefined) onAmbiguous(typed)
  if (entry === undefined || another !== undefined) return undefined
  const valuesOf = readerOf(entry)
  // The lockout would count another spelling as another account.
  const username = valuesOf(nameAttribute).find(each => accountKey(each) === accountKey(typed))
  if (username === undefined) return undefined
  const [id] = valuesOf(idAttribute)
  if (id === undefined) throw new Error(`${entry.dn} has no ${idAttribute} (user.id)`)
  const members = Object.entries(profile).map(([member, attribute]) => {
    const values = valuesOf(attribute)
    return [member, values.length > 1 ? values : values[0]] as const
  })
  return {
    dn: entry.dn,
    identity: {
      id,
      username,
      name: valuesOf(name)[0] ?? username,
      roles: [],
      profile: Object.fromEntries(members.filter(([, value]) => value !== undefined))
    }
  }
}

async function refusalOf(
  client: Client,
  dn: string,
  password: string
): Promise<Refusal | undefined> {
  // draft-behera-ldap-password-policy-10; the response is written into it.
  const policy = new PasswordPolicyControl()
  const error = await client.bind(dn, password, policy).catch((reason: unknown) => reason)
  const refusal = { vouched: false, isFinal: true } as const
  // Told of right passwords only, unlike a lock. One that was reset is good for changing it alone.
  const { PasswordExpired, ChangeAfterReset } = PasswordPolicyError
  const isExpired = [PasswordExpired, ChangeAfterReset].some(each => each === policy.value?.error)
  if (isExpired) return { ...refusal, kind: 'expired-password' }
  if (error === undefined) return undefined
  if (!(error instanceof ResultCodeError && refusing.has(error.code))) throw error
  const [, code = ''] = /AcceptSecurityContext error, data (\d{3}),/.exec(error.message) ?? []
  const kind = activeDirectory[code]
  return { ...refusal, ...(kind !== undefined && { kind }) }
}

async function rolesOf(client: Client, { bind, groups }: LdapConfig, user: User) {
  if (groups === undefined) return []
  // The connection may be the user's.
  await client.bind(bind.dn, bind.password)
  const { base, member: attribute, nested, roles } = groups
  const found = new Map<string, string | undefined>()
  let members = [attribute.toLowerCase() === 'memberuid' ? user.identity.username : user.dn]
  while (members.length > 0) {
    const filters = members.map(value => new EqualityFilter({ attribute, value }))
    const { searchEntries } = await client.search(base, {
      filter: new OrFilter({ filters }),
      attributes: [groupName],
      sizeLimit: maxGroups + 1
    })
    const fresh = searchEntries.filter(({ dn }) => !found.has(dn))
    for (const group of fresh) found.set(group.dn, readerOf(group)(groupName)[0])
    if (found.size > maxGroups) throw new Error(`${user.dn} is in more than ${maxGroups} groups`)
    members = nested ? fresh.map(({ dn }) => dn) : []
  }
  if (roles === undefined) return [...found.values()].filter(each => each !== undefined).toSorted()
  // Names of groups have no case.
  const names = new Set([...found].flat().map(each => each?.toLowerCase()))
  const given = Object.entries(roles).filter(([group]) => names.has(group.toLowerCase()))
  return [...new Set(given.map(([, role]) => role))]
}

/** The texts of an attribute, whose name has no case. */
function readerOf(entry: object): (attribute: string) => string[] {
  const values = new Map(Object.entries(entry).map(([key, value]) => [key.toLowerCase(), value]))
  return attribute =>
    [(values.get(attribute.toLowerCase()) ?? []) as unknown]
      .flat()
      .map(value => (Buffer.isBuffer(value) ? guidText(value) : value))
      .filter(value => typeof value === 'string' && value !== '') as string[]
}

const guidParts = /^(..)(..)(..)(..)(..)(..)(..)(..)(.{4})(.{12})$/

/** The first three parts of a GUID are little-endian ([MS-DTYP] 2.3.4). Undefined for other bytes. */
function guidText(bytes: Buffer): string | undefined {
  const hex = bytes.toString('hex')
  return guidParts.test(hex) ? hex.replace(guidParts, '$4$3$2$1-$6$5-$8$7-$9-$10') : undefined
}
