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
const hash = `password: "${knownHash}"`
const long = '# a long comment\n'.repeat(500)
const folderWith = (cleanUp: (undo: () => unknown) => void, users: string | Buffer | null) =>
  textFolder(cleanUp, {
    'gateway.yaml': 'session: { cookie: { secure: false } }\n',
    'users.yaml': users
  })
const usersIn = (folder: string) => loadConfig(folder, {}).users['users.yaml']?.users ?? {}
const textIn = (folder: string) => readFileSync(join(folder, 'users.yaml'), 'utf8')

t.test('a file that is not UTF-8 is not written, by users and schemas', async t => {
  const text = Buffer.from(`# Ask Bo\nusers: { Zo\xeb: { ${hash} } }\n`, 'latin1')
  const folder = folderWith(t.after, text)
  const message = `${join(folder, 'users.yaml')}:2: the file is not UTF-8 text: save it as UTF-8.\n`
  for (const words of ['users add carol', 'users set-password alice', 'schemas']) {
    const ran = await run([...words.split(' '), '-c', folder], { input: password })
    t.match(ran, { code: 1, err: message }, words)
  }
  t.same(readFileSync(join(folder, 'users.yaml')), text)
})

t.test('on a full disk nothing is changed, and that is said', async t => {
  const text = `users: { alice: { ${hash} } }\n${long}`
  const folder = folderWith(t.after, text)
  const names = readdirSync(folder)
  const words = ['users', 'set-password', 'alice', '-c', folder]
  const ran = await runProcess(words, { input: password, maxFileBlocks: 8 })
  t.match(ran, { code: 1, err: /^.*users\.yaml cannot be written \(EFBIG\)\.\n$/ })
  t.equal(textIn(folder), text)
  t.same(readdirSync(folder), names)
})

const staff = Array.from({ length: 100 }, (_, index) => `  u${index}: { ${hash}, roles: *staff }\n`)

for (const [title, text, after] of [
  ['empty', 'users: {}\n'],
  ['missing', null, /^# yaml-language-server: /],
  ['in flow style', `users: { bob: { ${hash} } }\n`],
  ['of Windows', `users:\r\n  bob:\r\n    ${hash}\r\n`, /^(?:[^\n]*\r\n)*$/],
  ['without a last line end', `users:\n  bob:\n    ${hash}`],
  ['with a folded text', `users:\n  bob:\n    password: >-\n      ${knownHash}\n`],
  ['with anchors', `users:\n  bob: { ${hash}, roles: &staff [x] }\n${staff.join('')}`],
  ['with a number', `users:\n  10001: { ${hash} } # 1st\n`, /^ {2}10001: .* # 1st$/m],
  ['with a merge', `users:\n  bob: &all { ${hash} }\n  eve: { <<: *all, id: e }\n`]
] as const) {
  t.test(`a users file ${title} is written, too`, async t => {
    const folder = folderWith(t.after, text)
    const users = async (what: string, name: string) => {
      const words = ['users', what, name, '-c', folder]
      t.match(await run(words, { input: password }), { code: 0 }, what)
    }
    await users('add', 'null')
    await users('set-password', 'null')
    const { bob, null: added } = usersIn(folder)
    t.ok(await verifyPassword(password, parseHash(added?.password ?? '')))
    t.equal(bob?.password, text?.includes('bob') === true ? knownHash : undefined)
    t.match(textIn(folder), after ?? /./)
    if (text === null) t.equal(statSync(join(folder, 'users.yaml')).mode & 0o777, 0o600)
    if (title !== 'with a merge') return
    await users('set-password', 'eve')
    t.equal(usersIn(folder)['bob']?.password, knownHash, 'the shared one stays')
    t.not(usersIn(folder)['eve']?.password, knownHash)
  })
}

t.test('a file that is mounted alone is said to be, with what to do', async t => {
  const busy = Object.assign(new Error('rename'), { code: 'EBUSY' })
  t.match(cannotWrite('users.yaml', busy).message, /\(EBUSY\)\. It is mounted alone.*its folder\.$/)
})
