/** `generate-secret` and `hash-password`. */
import { existsSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { parseHash, verifyPassword } from '../../src/login/argon2.ts'
import { run, running, runProcess } from '../support/command.ts'
import { faultsOf, textFolder } from '../support/config-files.ts'
import { temporaryFolder } from '../support/temporary.ts'

const folder = temporaryFolder()
const none = /^$/
const secret = /^[A-Za-z0-9_-]{43}\n$/
const generate = async (file: string) => await run(['generate-secret', file])

t.test('a secret is 32 random bytes in one line, and another each time', async t => {
  const [one, other] = [await run(['generate-secret']), await run(['generate-secret'])]
  t.match(one, { code: 0, out: secret, err: none })
  t.not(one.out, other.out)
})

t.test(
  'a file, as docker compose makes it, is of its owner alone, and never overwritten, also by several at once',
  async t => {
    const file = join(folder, 'once')
    const ran = await Promise.all(Array.from({ length: 4 }, () => generate(file)))
    t.ok(ran.every(({ code, out }) => code === 0 && out === ''))
    t.equal(ran.filter(({ err }) => err === `wrote ${file}\n`).length, 1)
    t.equal(statSync(file).mode & 0o777, 0o600)
    const written = readFileSync(file, 'utf8')
    t.match(written, secret)
    t.match(await generate(file), {
      code: 0,
      out: none,
      err: `${file} exists and was not changed\n`
    })
    t.equal(readFileSync(file, 'utf8'), written)
    const config =
      'server: { hosts: [h], trustedProxies: [10.0.0.0/8] }\nsession: { secrets: ["file:one"] }'
    t.same(faultsOf(textFolder(t.after, { 'gateway.yaml': config, 'one': written })), [])
  }
)

t.test('where no file can be the error is one line; a full disk leaves no empty one', async t => {
  const ran = await generate(join(folder, 'nowhere', 'secret'))
  t.match(ran, { code: 1, out: none, err: /^ENOENT: .*\n$/ })
  const file = join(folder, 'full')
  const full = await runProcess(['generate-secret', file], { maxFileBlocks: 0 })
  t.match(full, { code: 1, out: none, err: /^EFBIG: .*\n$/ })
  t.notOk(existsSync(file))
})

const hashLine = /^\$argon2id\$v=19\$m=19456,t=2,p=1\$[A-Za-z0-9+/]{22}\$[A-Za-z0-9+/]{43}\n$/

t.test('a password on standard input gives one line, its hash; a short one a note', async t => {
  for (const [input, password, err = none] of [
    ['correct horse battery\n', 'correct horse battery'],
    ['no line end at all', 'no line end at all'],
    ['from windows\r\n', 'from windows'],
    [' blanks around \n', ' blanks around '],
    ['пароль с 🔑\n', 'пароль с 🔑'],
    ['two\nlines\n', 'two\nlines'],
    ['short\n', 'short', /fewer than 8 characters/]
  ] as const) {
    const ran = await run(['hash-password'], { input })
    t.match(ran, { code: 0, out: hashLine, err }, JSON.stringify(input))
    t.ok(await verifyPassword(password, parseHash(ran.out.trim())), JSON.stringify(input))
  }
})

t.test('no password, and one longer than sign-in takes, are refused', async t => {
  for (const input of ['', '\n', 'x'.repeat(1025)]) {
    const err = 'A password has 1 to 1024 characters.\n'
    t.same(await run(['hash-password'], { input }), { code: 1, out: '', err }, `${input.length}`)
  }
})

// A terminal of its own, by util-linux' script.
async function typed(t: Test, ...answers: readonly string[]) {
  const command = `${process.execPath} src/launch.js hash-password`
  const terminal = running(t.after, 'script', ['-qec', command, '/dev/null'])
  for (const [index, answer] of answers.entries()) {
    await terminal.says(['Password: ', 'Again: '][index] ?? '')
    terminal.type(answer)
  }
  return terminal
}

t.test('at a terminal the password is asked for twice and never shown', async t => {
  const terminal = await typed(t, 'typed in secret\r', 'typed in secret\r')
  t.same(await terminal.ended, { code: 0, signal: null })
  const written = await terminal.says('$argon2id$')
  t.notMatch(written, 'typed in secret')
  const [hash = ''] = /\$argon2id\S+/.exec(written) ?? []
  t.ok(await verifyPassword('typed in secret', parseHash(hash)))
})

t.test('at a terminal two passwords that differ give no hash, and Ctrl+C gives none', async t => {
  const differing = await typed(t, 'typed in secret\r', 'typed in secrte\r')
  t.notMatch(await differing.says('The passwords do not match.'), 'argon2id')
  t.equal((await differing.ended).code, 1)
  const left = await typed(t, '\u0003')
  t.not((await left.ended).code, 0)
})
