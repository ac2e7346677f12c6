/** Sign-in at a directory over HTTP: a real slapd, and what no slapd says from a server of the test's own. */
import { createCipheriv } from 'node:crypto'
import { copyFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { testAuthority } from '../support/authority.ts'
import { run } from '../support/command.ts'
import { entry, fakeLdap, type FakeLdap, result, type Say } from '../support/fake-ldap.ts'
import { faultyProxy } from '../support/faulty-proxy.ts'
import { configFolder, cookieOf, noLockout, testGateway } from '../support/gateway.ts'
import { service, suffix, testDirectory, type Values } from '../support/slapd.ts'
import { until } from '../support/until.ts'
import { credentialSourceContract, rightPassword as password } from './credential-source.ts'

const people = `ou=people,${suffix}`
const groups = `ou=groups,${suffix}`

const contact = (uid: string) => ({ objectClass: ['inetOrgPerson'], uid, cn: uid, sn: uid })
const person = (uid: string, more: Values = {}): Values => ({
  ...contact(uid),
  userPassword: password,
  ...more
})
const group = (...members: readonly string[]): Values => ({
  objectClass: ['groupOfNames'],
  member: members.map(member => `${member},${suffix}`)
})
const unit = { objectClass: ['organizationalUnit'] }
const [alice, bob] = ['uid=alice,ou=people', 'uid=bob,ou=people']

const authority = testAuthority(t.teardown)
// Like Active Directory it binds anybody without a password, as nobody.
const directory = await testDirectory(
  t.after,
  authority,
  {
    'ou=people': unit,
    'ou=more,ou=people': unit,
    'ou=groups': unit,
    'ou=posix,ou=groups': unit,
    [alice]: person('alice', {
      cn: 'Alice',
      employeeNumber: '1',
      mail: 'alice@example.com',
      telephoneNumber: ['1', '2'],
      entryUUID: '0f4b2f6e-8d7c-4b8e-9a53-2f6c0c3d1e55'
    }),
    [bob]: person('bob'),
    'uid=twin,ou=people': person('twin'),
    'uid=twin,ou=more,ou=people': person('twin'),
    'uid=odd\\2C\\22 name\\5C,ou=people': person('odd," name\\'),
    'uid=reset,ou=people': person('reset', { pwdReset: 'TRUE' }),
    'uid=late,ou=people': person('late', { pwdChangedTime: '20200101000000Z' }),
    'uid=locked,ou=people': person('locked', { pwdAccountLockedTime: '000001010000Z' }),
    'cn=contact,ou=people': contact('contact'),
    'cn=admin,ou=groups': group(alice),
    'cn=user,ou=groups': group(alice, bob),
    'cn=inner,ou=groups': group(alice, 'cn=outer,ou=groups'),
    'cn=outer,ou=groups': group('cn=inner,ou=groups'),
    'cn=ops,ou=posix,ou=groups': { objectClass: ['posixGroup'], gidNumber: '7', memberUid: 'alice' }
  },
  ['allow bind_anon_cred']
)
const tlsUrl = `ldaps://127.0.0.1:${directory.tlsPort}`

const source = {
  kind: 'ldap',
  urls: [tlsUrl],
  ca: 'ca.pem',
  bind: { dn: service.dn, password: '${LDAP_PASSWORD}' },
  base: people
}
const environment = { LDAP_PASSWORD: service.password }

interface Setting {
  readonly lockout?: object
  readonly login?: object
}

async function folderOf(over: object = {}, { lockout = noLockout, login = {} }: Setting = {}) {
  const folder = await configFolder({
    gateway: { login: { sources: { staff: { ...source, ...over } }, ...login } },
    limits: { lockout }
  })
  copyFileSync(authority.certificate, join(folder, 'ca.pem'))
  return folder
}

async function gatewayOf(t: Test, over: object = {}, setting: Setting = {}) {
  const gateway = await testGateway(t.after, await folderOf(over, setting), environment)
  const login = async (username = 'alice', typed = password) =>
    await gateway.attempt(username, { password: typed })
  /** What the sign-in of a user gives, as the log has it. */
  const signedIn = async (username = 'alice') => {
    const from = gateway.log.length
    const { status, text } = await login(username)
    if (status !== 200) throw new Error(text)
    return await gateway.logged(({ event }) => event === 'login', from)
  }
  const refusal = async (username?: string, typed?: string) => {
    const { status, json } = await login(username, typed)
    return `${status} ${json.errorCode}`
  }
  return { ...gateway, login, signedIn, refusal }
}

const ofContract = await gatewayOf(t, {
  user: { id: 'employeeNumber', profile: { email: 'mail' } },
  groups: { base: groups, roles: { admin: 'admin', user: 'user' } }
})
credentialSourceContract(t, ofContract, ['alicé'])

t.test('who signs in: an id that never changes, a name, the parts of config', async t => {
  const profile = { email: 'mail', phones: 'telephoneNumber', none: 'title' }
  const gateway = await gatewayOf(t, { user: { profile } })
  const cookie = cookieOf(await gateway.login('ALICE'))
  const { json } = await gateway.call('/api/account/profile', { cookie })
  t.match(json.data, {
    userid: '0f4b2f6e-8d7c-4b8e-9a53-2f6c0c3d1e55',
    name: 'Alice',
    email: 'alice@example.com',
    phones: ['1', '2'],
    none: undefined
  })
  t.match(await gateway.signedIn('ALICE'), { user: 'alice', source: 'staff', roles: [] })
  t.match(await gateway.signedIn('odd," name\\'), { user: 'odd," name\\' })
})

t.test('roles are groups by name, nested or not, or only those that config lists', async t => {
  const rolesWith = async (t: Test, of: object, username?: string) => {
    const gateway = await gatewayOf(t, { groups: { base: groups, ...of } })
    return (await gateway.signedIn(username))['roles']
  }
  t.same(await rolesWith(t, {}), ['admin', 'inner', 'user'])
  t.same(await rolesWith(t, { nested: true }), ['admin', 'inner', 'outer', 'user'])
  t.same(await rolesWith(t, { nested: true }, 'bob'), ['user'])
  t.same(await rolesWith(t, { member: 'memberUid' }), ['ops'])
  const roles = { 'ADMIN': 'admin', [`cn=user,${groups}`]: 'reader', 'cn=inner,dc=other': 'root' }
  t.same(await rolesWith(t, { roles }), ['admin', 'reader'])
  const required = { base: groups, roles: { admin: 'admin' }, required: true }
  const gateway = await gatewayOf(t, { groups: required })
  t.match(await gateway.signedIn(), { roles: ['admin'] })
  t.equal(await gateway.refusal('bob'), '403 login.blocked')
  t.equal(await gateway.refusal('bob', 'wrong'), '401 login.refused')
})

t.test('no user name says more than a name', async t => {
  const gateway = await gatewayOf(t)
  const corpus = [
    ...['*', 'al*', 'a*ice', '(uid=*)', 'alice)(uid=*', '*)(uid=*))(|(uid=*', 'alice)(|(uid=*))'],
    ...['\\2a', 'alice\\00', 'alice\u0000', '\u0000', '&', '|', '!(uid=bob)', 'uid=alice', people],
    ...['alice,ou=people', `uid=alice,${people}`, 'dn:alice', 'objectClass=*', '＊', '٭', '#616c'],
    ...['${uid}', '{username}', "alice' or '1'='1", '\ud800', '\u202ealice\u202c)', 'ａ*']
  ]
  const from = directory.lines.length
  for (const username of corpus) {
    t.equal(await gateway.refusal(username), '401 login.refused', JSON.stringify(username))
  }
  const searches = directory.lines.slice(from).filter(line => line.includes('SRCH base'))
  t.equal(searches.length, corpus.length)
  t.same(
    searches.filter(line => !/scope=2 deref=0 filter="\(uid=(?:[^()*]|\\2[89A])*\)"$/i.test(line)),
    [],
    'each searches for one name'
  )
  t.equal(await gateway.refusal('twin'), '401 login.refused', 'of two entries')
  t.match(await gateway.logged(({ event }) => event === 'login.ambiguous'), {
    level: 'warn',
    source: 'staff',
    user: 'twin'
  })
})

t.test('what the directory is asked tells nothing of who exists', async t => {
  const gateway = await gatewayOf(t)
  const asked = async (username: string) => {
    const from = directory.lines.length
    await gateway.refusal(username, 'wrong')
    const isClosed = () => directory.lines.slice(from).some(line => line.includes('closed'))
    await until('slapd has logged the end', isClosed)
    const asks = directory.lines
      .slice(from)
      .flatMap(line => / op=\d+ (\w+) \w+=/.exec(line)?.[1] ?? [])
    return asks
  }
  const known = await asked('alice')
  t.match(known, ['BIND', 'BIND', 'RESULT', 'SRCH', 'SRCH'])
  for (const username of ['nobody', 'twin', 'contact', 'locked']) {
    t.same(await asked(username), known, username)
  }
})

t.test('without a password nobody is asked, whatever a directory thinks of it', async t => {
  const key = '0123456789abcdef'
  const { login } = await gatewayOf(t, {}, { login: { fields: { cipher: { key } } } })
  const encrypted = (text: string) => {
    const cipher = createCipheriv('aes-128-ecb', key, null)
    return cipher.update(text, 'utf8', 'base64') + cipher.final('base64')
  }
  const from = directory.lines.length
  t.equal((await login('alice', encrypted(''))).status, 401)
  t.same(directory.lines.slice(from), [])
  t.equal((await login('alice', encrypted(password))).status, 200)
})

t.test('an expired password is told to those who know it, a lock to nobody', async t => {
  const gateway = await gatewayOf(t)
  for (const [username, right] of [
    ['reset', '403 login.expired-password'],
    ['late', '403 login.expired-password'],
    ['locked', '401 login.refused'],
    ['contact', '401 login.refused']
  ] as const) {
    t.equal(await gateway.refusal(username), right, username)
    t.equal(await gateway.refusal(username, 'wrong'), '401 login.refused', username)
  }
})

const guid = Buffer.from('00112233445566778899aabbccddeeff', 'hex')
const found = (more: object = { objectGUID: guid }): Say[] => [
  entry(`cn=alice,${people}`, { sAMAccountName: 'Alice', displayName: 'Alice A.', ...more }),
  result('search', 0)
]
const plainly = ({ port }: FakeLdap, more: object = {}) => ({
  urls: [`ldap://127.0.0.1:${port}`],
  startTls: false,
  user: { username: 'sAMAccountName', id: 'objectGUID', name: 'displayName' },
  ...more
})

t.test('Active Directory: its id becomes the usual text, its codes the reasons', async t => {
  let last: Say = result('bind', 0)
  const server = await fakeLdap(t.after, (operation, count) => {
    if (operation === 'search') return found()
    return [count < 2 ? result('bind', 0) : last]
  })
  const gateway = await gatewayOf(t, plainly(server))
  t.match(await gateway.signedIn(), {
    user: 'Alice',
    userId: '33221100-5544-7766-8899-aabbccddeeff'
  })
  const dsid = '80090308: LdapErr: DSID-0C090447, comment: AcceptSecurityContext error, data'
  const reason = (code: string) => result('bind', 49, `${dsid} ${code}, v4563\u0000`)
  const codes: Record<string, readonly Say[]> = {
    '401 login.refused': [
      ...['52e', '525', '775'].map(reason),
      ...[19, 32, 48, 53].map(code => result('bind', code))
    ],
    '403 login.blocked': ['530', '531', '533', '701'].map(reason),
    '403 login.expired-password': ['532', '773'].map(reason),
    '503 upstream.refused': [1, 2, 8, 10, 13, 51, 52, 80].map(code => {
      return result('bind', code, 'reason')
    })
  }
  for (const [expected, said] of Object.entries(codes)) {
    for (const [index, say] of said.entries()) {
      last = say
      t.equal(await gateway.refusal(), expected, `${index}`)
    }
  }
})

t.test('a server that says nonsense ends no process and signs nobody in', async t => {
  const bound = [result('bind', 0)]
  const large = Array.from({ length: 10 }, () => entry('cn=a', { x: 'x'.repeat(60_000) }))
  const said: Record<string, readonly [bind: readonly Say[], search: readonly Say[]]> = {
    'a flood of messages': [Array.from({ length: 9000 }, () => result('bind', 0)), []],
    'half a megabyte': [bound, large],
    'an entry without an id': [bound, found({})],
    'an id of wrong bytes': [bound, found({ objectGUID: guid.subarray(1) })],
    'a referral in place of users': [bound, [result('search', 10)]],
    'no rights': [bound, [result('search', 50)]],
    'the service account is refused': [[result('bind', 49)], []]
  }
  for (const [what, [bind, search]] of Object.entries(said)) {
    const server = await fakeLdap(t.after, operation => (operation === 'bind' ? bind : search))
    const gateway = await gatewayOf(t, plainly(server))
    const { status, text } = await gateway.login()
    t.match([status, JSON.parse(text).errorCode], [503, 'upstream.refused'], what)
    t.notMatch(text, /127\.0\.0\.1|LDAP|dc=example/i)
  }
})

t.test('whoever stands on the way before TLS signs nobody in', async t => {
  const injected = [2, 3, 4, 5].map(
    (id): Say =>
      () =>
        result('bind', 0)(id)
  )
  const server = await fakeLdap(t.after, operation =>
    operation === 'extended' ? [result('extended', 0), ...injected] : undefined
  )
  const gateway = await gatewayOf(t, plainly(server, { startTls: true }))
  t.equal(await gateway.refusal(), '503 upstream.refused')
  t.equal(server.connections.length, 1)
})

t.test('StartTLS comes before anything else, with a certificate for this host', async t => {
  const strict = await testDirectory(
    t.after,
    authority,
    { 'ou=people': unit, [alice]: person('alice') },
    ['security simple_bind=128']
  )
  const urls = [`ldap://localhost:${strict.port}`]
  t.match(await (await gatewayOf(t, { urls })).signedIn(), { user: 'alice' })
  const other = testAuthority(t.after, 'DNS:other.example')
  const wrong = await testDirectory(t.after, other, { 'ou=people': unit })
  for (const over of [
    { urls, startTls: false },
    { urls: [`ldap://localhost:${directory.port}`], ca: undefined },
    { urls: [tlsUrl], ca: undefined },
    { urls: [`ldap://localhost:${wrong.port}`], ca: other.certificate },
    { urls: [`ldaps://localhost:${wrong.tlsPort}`], ca: other.certificate }
  ]) {
    const gateway = await gatewayOf(t, over)
    t.equal(await gateway.refusal(), '503 upstream.refused', JSON.stringify(over))
  }
  const binds = (lines: readonly string[]) => lines.filter(line => line.includes('method=128'))
  t.same(binds(wrong.lines), [])
})

t.test('a directory that fails is 503 with a reason in the log, and no failure', async t => {
  const proxy = await faultyProxy(t.after, directory.tlsPort)
  const urls = [`ldaps://127.0.0.1:${proxy.port}`]
  const once = { failures: 2, every: '1h' }
  const lockout = { accountAndAddress: once, address: 'off', account: once }
  const gateway = await gatewayOf(t, { urls }, { lockout })
  for (const mode of ['refuse', 'cut', 'garbage'] as const) {
    await proxy.set(mode)
    const from = gateway.log.length
    t.equal(await gateway.refusal('alice', 'a guess'), '503 upstream.refused', mode)
    const line = await gateway.logged(({ route }) => route === 'login', from)
    t.match(line['reason'], new RegExp(`^${urls[0]}: `), mode)
    t.notMatch(JSON.stringify(line), /guess|a service password/)
  }
  await proxy.set('pass')
  t.match(await gateway.signedIn(), { user: 'alice' }, 'none of them counted')
  t.equal(await gateway.refusal('alice', 'wrong'), '401 login.refused')
  t.equal(await gateway.refusal('alice', 'wrong'), '401 login.refused')
  t.equal(await gateway.refusal('ALICE'), '429 login.locked')
})

t.test('where one server fails the next one answers, and is asked first from then on', async t => {
  const second = await testDirectory(t.after, authority, {
    'ou=people': unit,
    [alice]: person('alice')
  })
  const silent = await fakeLdap(t.after, () => [])
  const proxy = await faultyProxy(t.after, second.tlsPort)
  const urls = [`ldaps://127.0.0.1:${silent.port}`, `ldaps://127.0.0.1:${proxy.port}`, tlsUrl]
  const gateway = await gatewayOf(t, { urls })
  t.match(await gateway.signedIn(), { user: 'alice' })
  t.match(await gateway.signedIn(), { user: 'alice' })
  t.equal(silent.connections.length, 1, 'the silent one is not waited for again')
  await second.kill()
  t.match(await gateway.signedIn(), { user: 'alice' })
  t.match(await gateway.signedIn('bob'), { user: 'bob' }, 'the third one has bob')
  t.equal(silent.connections.length, 1)
})

t.test('a silent directory holds 20 sign-ins, lets 100 wait, and refuses the rest', async t => {
  const silent = await fakeLdap(t.after, () => [])
  const gateway = await gatewayOf(t, plainly(silent))
  const refusals = Promise.all(Array.from({ length: 130 }, () => gateway.refusal()))
  await until('20 are held', () => silent.connections.length === 20)
  const counts = Map.groupBy(await refusals, each => each)
  t.strictSame([...counts.keys()].toSorted(), ['503 overloaded', '503 upstream.refused'])
  // Whether a place is free or the wait is over first makes no difference to those that wait.
  const refused = counts.get('503 upstream.refused')?.length ?? 0
  t.ok(refused >= 20 && refused <= 120, `${refused} were asked`)
})

t.test('check --live --user shows whom a directory knows, without a password', async t => {
  const folder = await folderOf({ urls: [tlsUrl], groups: { base: groups } })
  const check = async (...more: readonly string[]) =>
    await run(['check', '--live', ...more, '-c', folder], { env: environment })
  t.match(await check(), { code: 0, out: `sign-in staff: ${tlsUrl}: ok\n` })
  const id = '0f4b2f6e-8d7c-4b8e-9a53-2f6c0c3d1e55'
  const { out } = await check('--user', 'alice')
  t.match(out, `${tlsUrl}: ok (alice: id ${id}, name Alice, roles admin, inner, user)`)
  t.match((await check('--user', 'nobody')).out, 'ok (nobody: no such user, or several)')
})
