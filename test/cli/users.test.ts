/** Users files of all kinds, and what may go wrong; the rest stands in users.transcript.yaml. */
import { readdirSync, readFileSync, statSync } from 'node:fs'
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

t.test('a file that is mounted alone is said to be, with what to do', t => {
  const busy = Object.assign(new Error('rename'), { code: 'EBUSY' })
  t.match(cannotWrite('users.yaml', busy).message, /\(EBUSY\)\. It is mounted alone.*its folder\.$/)
  t.end()
})
