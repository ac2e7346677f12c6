import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { loadConfig } from '../../src/config/read/load.ts'
import { parseHash, verifyPassword } from '../../src/login/argon2.ts'
import { cannotWrite } from '../../src/cli/replace-file.ts'
import { run, runProcess } from '../support/command.ts'
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

/** As the file is written again: laid out by two blanks, with all that it says. */
const rewritten = `# yaml-language-server: $schema=schema/users.schema.json
# Ask Bo before you change this.

users:
  alice:
    # the boss
    password: ${knownHash}
    roles: [ admin, user ] # both

  bob: { password: "${knownHash}", id: "7" } # on one line
`

t.test('add writes a user that can sign in; comments and the other users stay', async t => {
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
  const member = text.slice(rewritten.length, text.indexOf('# The end.'))
  t.equal(text, `${rewritten}${member}# The end.\n`)
  t.match(
    member,
    /^ {2}carol:\n {4}password: \S+\n {4}id: "12"\n {4}name: Carol Chen\n {4}roles:\n/
  )
  t.match(await run(['check', '--config', folder]), { code: 0 })
})

t.test('set-password changes the hash and nothing else, in every way to write it', async t => {
  const folder = folderWith(t.after, `${rewritten}\n# The end.\n`)
  for (const name of ['alice', 'bob']) {
    const before = textIn(folder)
    const { code, out } = await run(['users', 'set-password', name, '-c', folder], {
      input: `${name} ${password}`
    })
    t.equal(code, 0)
    t.match(out, `set the password of ${name}; running sessions of ${name} end`)
    const hash = usersIn(folder)[name]?.password ?? ''
    t.ok(await verifyPassword(`${name} ${password}`, parseHash(hash)))
    t.equal(textIn(folder).replace(hash, knownHash).replaceAll('"', ''), before.replaceAll('"', ''))
  }
})

t.test('a file that is not UTF-8 is not written, by users and schemas', async t => {
  const latin = Buffer.from(file.replace('Bo', 'Zo\xeb'), 'latin1')
  const folder = textFolder(t.after, { 'users.yaml': latin })
  const message = `${join(folder, 'users.yaml')}:2: the file is not UTF-8 text: save it as UTF-8.\n`
  const after = readFileSync(join(folder, 'users.yaml'))
  for (const words of [
    ['users', 'add', 'carol'],
    ['users', 'set-password', 'alice']
  ]) {
    const result = await run([...words, '-c', folder], { input: password })
    t.match(result, { code: 1, err: message })
  }
  const plain = Buffer.from('users: {} # \xfc\n', 'latin1')
  const other = textFolder(t.after, { 'users.yaml': plain })
  t.match(await run(['schemas', '-c', other]), {
    code: 1,
    err: /users\.yaml:1: the file is not UTF-8/
  })
  t.same(readFileSync(join(folder, 'users.yaml')), after)
  t.same(readFileSync(join(other, 'users.yaml')), plain)
})

t.test('on a full disk nothing is changed, and that is said', async t => {
  const folder = folderWith(t.after, `${file}${'# a long comment\n'.repeat(500)}`)
  const before = textIn(folder)
  const names = readdirSync(folder)
  const words = ['users', 'set-password', 'alice', '-c', folder]
  const { code, err } = await runProcess(words, { input: password, maxFileBlocks: 8 })
  t.equal(code, 1)
  t.match(err, /^.*users\.yaml cannot be written \(EFBIG\)\.\n$/)
  t.equal(textIn(folder), before)
  t.same(readdirSync(folder), names)
})

t.test('empty, missing, flow, CRLF and merged users files are written too', async t => {
  const names = Array.from({ length: 100 }, (_, index) => `u${index}`)
  const ofStaff = names.map(name => `  ${name}: { password: "${knownHash}", roles: *staff }\n`)
  const texts = {
    empty: 'users: {}\n',
    nothing: null,
    flow: `users: { bob: { password: "${knownHash}" } }\n`,
    windows: `users:\r\n  bob:\r\n    password: ${knownHash}\r\n`,
    unended: `users:\n  bob:\n    password: ${knownHash}`,
    folded: `users:\n  bob:\n    password: >-\n      ${knownHash}\n`,
    anchors: `users:\n  bob: { password: "${knownHash}", roles: &staff [x] }\n${ofStaff.join('')}`,
    number: `users:\n  10001: { password: "${knownHash}" } # staff number\n`,
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
    if (name === 'number') t.match(textIn(folder), /^ {2}10001: .* # staff number$/m)
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
    for (const id of ['7', 'alice']) {
      const message = new RegExp(`Not written:\n.*has the id "${id}" too`)
      await refused(['add', 'carol', '--id', id], message)
    }
    await refused(['set-password', 'alice2'], /has no user "alice2"\. Did you mean "alice"\?/)
    await refused(['set-password', 'bob', '--role', 'x'], /unknown option '--role'/, 2)
    await refused(['add', 'carol', '--password-env', 'UNSET'], /UNSET is not set/)
    await refused(['add', 'carol', '--role', ''], /Not written:\n.*roles/)
    await refused(
      ['add', 'carol', '--file', 'other.yaml'],
      /Name one of the users files .*: users\.yaml/,
      2
    )
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

t.test('faults of other files do not stop the change', async t => {
  const folder = textFolder(t.after, {
    'gateway.yaml': 'session: { secrets: ["${NOT_SET_HERE}"] }\n',
    'users.yaml': 'users: {}\n'
  })
  const result = await run(['users', 'add', 'carol', '-c', folder], { input: password })
  t.match(result, { code: 0, err: '' })
})

t.test('the users file is the one that a start reads: references and presets', async t => {
  const add = async (gateway: string, env = {}) => {
    const users = { 'staff.yaml': 'users: {}\n', 'users.yaml': null }
    const folder = textFolder(t.after, { 'gateway.yaml': gateway, ...users })
    const { code, err } = await run(['users', 'add', 'carol', '-c', folder], {
      input: password,
      env
    })
    return { code, err, staff: readFileSync(join(folder, 'staff.yaml'), 'utf8') }
  }
  const named = (file: string) =>
    `login: { sources: { users-file: { kind: users-file, file: "${file}" } } }\n`
  t.match(await add(named('${STAFF_FILE:-staff.yaml}')), { code: 0, staff: /carol/ })
  const env = { STAFF_FILE: 'staff.yaml' }
  t.match(await add(named('${STAFF_FILE}'), env), { code: 0, staff: /carol/ })
  const refused = { code: 1, staff: 'users: {}\n' }
  t.match(await add(named('${STAFF_FILE}')), { ...refused, err: /STAFF_FILE is not set/ })
  t.match(await add('backend: ruoyi\n'), { ...refused, err: /no source of the kind users-file/ })
})

t.test('several users files: one is chosen by --file', async t => {
  const source = (name: string) => `${name}: { kind: users-file, file: ${name}.yaml }`
  const folder = textFolder(t.after, {
    'gateway.yaml': `login: { sources: { ${source('staff')}, ${source('guests')} } }\n`,
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
  const shared = folderWith(
    t.after,
    `users:\n  a: { password: &p "${knownHash}" }\n  b: { password: *p }\n  c: *p\n`
  )
  const before = textIn(shared)
  for (const [name, message] of [
    ['a', /Unresolved alias.*: change the file by hand/],
    ['c', /users\.c is an alias: change it by hand/]
  ] as const) {
    const words = ['users', 'set-password', name, '-c', shared]
    t.match(await run(words, { input: password }), { code: 1, err: message })
  }
  t.equal(textIn(shared), before)
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

t.test('a file that is mounted alone is said to be, with what to do', t => {
  const busy = Object.assign(new Error('rename'), { code: 'EBUSY' })
  t.match(cannotWrite('users.yaml', busy).message, /\(EBUSY\)\. It is mounted alone.*its folder\.$/)
  t.end()
})
