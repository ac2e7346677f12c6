import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { loadConfig } from '../../src/config/load/load.ts'
import { parseHash, verifyPassword } from '../../src/login/argon2.ts'
import { run, running } from '../support/command.ts'
import { knownHash, textFolder } from '../support/config-files.ts'

const password = 'a long pass phrase'
const file = `# yaml-language-server: $schema=schema/users.schema.json
# Ask Bo before you change this.

users:
    alice:      # the boss
        password: ${knownHash}
        roles: [ admin ,  user ]   # both

    bob: { password: "${knownHash}", id: "7" }   # on one line
# The end.
`
const folderWith = (cleanUp: (undo: () => unknown) => void, users: string | null = file) =>
  textFolder(cleanUp, {
    'gateway.yaml': 'session: { cookie: { secure: false } }\n',
    'users.yaml': users
  })
const usersIn = (folder: string) => loadConfig(folder, {}).users['users.yaml']?.users ?? {}
const textIn = (folder: string) => readFileSync(join(folder, 'users.yaml'), 'utf8')

t.test('add writes a user that can sign in, and leaves every other byte as it was', async t => {
  const folder = folderWith(t.after)
  const words = ['users', 'add', 'carol', '--config', folder, '--role', 'admin', '--role', 'user']
  const { code, out, err } = await run([...words, '--id', '12', '--name', 'Carol Chen'], {
    input: `${password}\n`
  })
  t.same({ code, err }, { code: 0, err: '' })
  t.match(out, /users\.yaml: added carol \(roles: admin, user\)\n$/)
  const { carol } = usersIn(folder)
  t.match(carol, { id: '12', name: 'Carol Chen', roles: ['admin', 'user'] })
  t.ok(await verifyPassword(password, parseHash(carol?.password ?? '')))
  const text = textIn(folder)
  const added = text.split('\n').filter(line => !file.split('\n').includes(line))
  t.equal(text.replace(`${added.join('\n')}\n`, ''), file)
  t.match(added, [
    /^ {4}carol:$/,
    /^ {6}password: /,
    /^ {6}id: "12"$/,
    /^ {6}name: Carol Chen$/,
    /^ {6}roles:$/
  ])
  t.match(await run(['check', '--config', folder]), { code: 0 })
})

t.test('set-password changes the hash and nothing else, in every way to write it', async t => {
  const folder = folderWith(t.after)
  for (const name of ['alice', 'bob']) {
    const before = textIn(folder)
    const { code, out } = await run(['users', 'set-password', name, '-c', folder], {
      input: `${name} ${password}`
    })
    t.equal(code, 0)
    t.match(out, `set the password of ${name}; running sessions of ${name} end`)
    const hash = usersIn(folder)[name]?.password ?? ''
    t.ok(await verifyPassword(`${name} ${password}`, parseHash(hash)))
    t.equal(textIn(folder).replace(hash, knownHash), before)
  }
})

t.test('empty, missing, flow, CRLF and merged users files are written too', async t => {
  const texts = {
    empty: 'users: {}\n',
    nothing: null,
    flow: `users: { bob: { password: "${knownHash}" } }\n`,
    windows: `users:\r\n  bob:\r\n    password: ${knownHash}\r\n`,
    unended: `users:\n  bob:\n    password: ${knownHash}`,
    folded: `users:\n  bob:\n    password: >-\n      ${knownHash}\n`,
    merged: `users:\n  bob: &all { password: "${knownHash}" }\n  eve: { <<: *all, id: e }\n`
  }
  for (const [name, text] of Object.entries(texts)) {
    const folder = folderWith(t.after, text)
    const words = ['-c', folder, '--password-env', 'NEW']
    const env = { NEW: password }
    t.match(await run(['users', 'add', 'null', ...words], { env }), { code: 0, err: '' }, name)
    t.match(await run(['users', 'set-password', 'null', ...words], { env }), { code: 0 }, name)
    const users = usersIn(folder)
    t.ok(await verifyPassword(password, parseHash(users['null']?.password ?? '')), name)
    t.equal(users['bob']?.password, text?.includes('bob') === true ? knownHash : undefined, name)
    if (name === 'merged') {
      t.match(await run(['users', 'set-password', 'eve', ...words], { env }), { code: 0 })
      t.equal(usersIn(folder)['bob']?.password, knownHash, 'the shared one stays')
      t.not(usersIn(folder)['eve']?.password, knownHash)
    }
    if (name === 'windows') t.notMatch(textIn(folder), /[^\r]\n/)
    if (name === 'nothing') {
      t.equal(statSync(join(folder, 'users.yaml')).mode & 0o777, 0o600)
      t.match(textIn(folder), /^# yaml-language-server: /)
    }
  }
})

t.test(
  'what exists is not added, what does not exist gets no password, nothing is left',
  async t => {
    const folder = folderWith(t.after)
    const refused = async (words: readonly string[], message: RegExp, code = 1) => {
      const ran = await run(['users', ...words, '-c', folder], { input: password })
      t.match(ran, { code, out: '', err: message })
      t.notMatch(ran.err, password)
      t.equal(textIn(folder), file)
    }
    await refused(['add', 'alice'], /has the user "alice" already.*users set-password alice/)
    await refused(['add', 'carol', '--id', '7'], /"bob" has the id "7" already/)
    await refused(['add', 'carol', '--id', 'alice'], /"alice" has the id "alice" already/)
    await refused(['set-password', 'alice2'], /has no user "alice2"\. Did you mean "alice"\?/)
    await refused(['set-password', 'bob', '--role', 'x'], /--role is an option of add/, 2)
    await refused(['add', 'carol', '--password-env', 'UNSET'], /UNSET is not set/)
    await refused(['add', 'carol', '--role', ''], /Not written:\n.*roles/)
    await refused(['add', 'carol', '--file', 'other.yaml'], /names no users file other\.yaml/, 2)
    await refused(['add', ' carol'], /Not a valid user name/, 2)
    await refused(['remove', 'bob'], /Name a subcommand/, 2)
    t.same(readdirSync(folder).toSorted(), [
      'gateway.yaml',
      'limits.yaml',
      'routes.yaml',
      'users.yaml'
    ])
  }
)

t.test('a password as an argument is refused and not shown again', async t => {
  const folder = folderWith(t.after)
  const { code, out, err } = await run(['users', 'add', 'carol', 'hunter2', '-c', folder])
  t.same({ code, out }, { code: 2, out: '' })
  t.match(err, /visible to everyone on this machine/)
  t.notMatch(err, 'hunter2')
})

t.test('faults that stood there before neither stop the change nor go unsaid', async t => {
  const folder = textFolder(t.after, {
    'gateway.yaml': 'session: { secrets: ["${NOT_SET_HERE}"] }\n',
    'users.yaml': 'users: {}\n'
  })
  const { code, err } = await run(['users', 'add', 'carol', '-c', folder], { input: password })
  t.equal(code, 0)
  t.match(err, /Note: the config has \d faults? of before: console-gateway check/)
})

t.test('several users files: one is chosen by --file', async t => {
  const source = (name: string) => `{ kind: users-file, name: ${name}, file: ${name}.yaml }`
  const folder = textFolder(t.after, {
    'gateway.yaml': `login: { sources: [${source('staff')}, ${source('guests')}] }\n`,
    'users.yaml': null,
    'staff.yaml': 'users: {}\n'
  })
  const add = ['users', 'add', 'carol', '-c', folder]
  t.match(await run(add, { input: password }), { code: 2, err: /staff\.yaml, guests\.yaml/ })
  t.match(await run([...add, '--file', 'guests.yaml'], { input: password }), { code: 0 })
  t.ok(existsSync(join(folder, 'guests.yaml')))
  t.equal(readFileSync(join(folder, 'staff.yaml'), 'utf8'), 'users: {}\n')
})

t.test('a shared anchor and a file that is not YAML are left to their owner', async t => {
  const shared = folderWith(t.after, `users:\n  a: { password: &p "${knownHash}" }\n`)
  t.match(await run(['users', 'set-password', 'a', '-c', shared], { input: password }), {
    code: 1,
    err: /has the anchor &p, which others may share/
  })
  const broken = folderWith(t.after, 'users: [')
  t.match(await run(['users', 'add', 'a', '-c', broken], { input: password }), {
    code: 1,
    err: /Not valid YAML/
  })
  const list = folderWith(t.after, 'users: []')
  t.match(await run(['users', 'add', 'a', '-c', list], { input: password }), {
    code: 1,
    err: /no mapping "users"/
  })
})

t.test('at a terminal the password is asked for twice and never shown', async t => {
  const folder = folderWith(t.after)
  const terminal = running(t.after, 'script', [
    '-qec',
    `${process.execPath} src/launch.js users add carol -c ${folder}`,
    '/dev/null'
  ])
  await terminal.says('Password: ')
  terminal.type(`${password}\r`)
  await terminal.says('Again: ')
  terminal.type(`${password}\r`)
  t.notMatch(await terminal.says('added carol'), password)
  t.same(await terminal.ended, { code: 0, signal: null })
})
