import t from 'tap'
import { parseHash, verifyPassword } from '../../src/login/argon2.ts'
import { run, running } from '../support/command.ts'

const hashLine = /^\$argon2id\$v=19\$m=19456,t=2,p=1\$[A-Za-z0-9+/]{22}\$[A-Za-z0-9+/]{43}\n$/

t.test('a password on standard input gives one line: its hash', async t => {
  const given = [
    ['correct horse battery\n', 'correct horse battery'],
    ['no line end at all', 'no line end at all'],
    ['from windows\r\n', 'from windows'],
    [' blanks around \n', ' blanks around '],
    ['пароль с 🔑\n', 'пароль с 🔑'],
    ['two\nlines\n', 'two\nlines']
  ] as const
  await Promise.all(
    given.map(async ([input, password]) => {
      const { code, out, err } = await run(['hash-password'], { input })
      t.same({ code, err }, { code: 0, err: '' }, JSON.stringify(input))
      t.match(out, hashLine)
      t.ok(await verifyPassword(password, parseHash(out.trim())), JSON.stringify(input))
    })
  )
})

t.test('a short password gives its hash and a note', async t => {
  const { code, out, err } = await run(['hash-password'], { input: 'short\n' })
  t.equal(code, 0)
  t.match(out, hashLine)
  t.match(err, /fewer than 8 characters/)
})

t.test('no password, and one longer than sign-in takes, are refused', async t => {
  for (const input of ['', '\n', 'x'.repeat(1025)]) {
    const { code, out, err } = await run(['hash-password'], { input })
    t.same(
      { code, out, err },
      { code: 1, out: '', err: 'A password has 1 to 1024 characters.\n' },
      `${input.length}`
    )
  }
})

// A terminal of its own, by util-linux' script.
const prompt = (cleanUp: (undo: () => unknown) => void) =>
  running(cleanUp, 'script', [
    '-qec',
    `${process.execPath} src/launch.js hash-password`,
    '/dev/null'
  ])

t.test('at a terminal the password is asked for twice and never shown', async t => {
  const terminal = prompt(t.after)
  await terminal.says('Password: ')
  terminal.type('typed in secret\r')
  await terminal.says('Again: ')
  terminal.type('typed in secret\r')
  const written = await terminal.says('$argon2id$')
  t.same(await terminal.ended, { code: 0, signal: null })
  t.notMatch(written, 'typed in secret')
  t.ok(
    await verifyPassword(
      'typed in secret',
      parseHash(/\$argon2id\S+/.exec(await terminal.says('$argon2id$'))?.[0] ?? '')
    )
  )
})

t.test('at a terminal two passwords that differ give no hash, and Ctrl+C gives none', async t => {
  const differing = prompt(t.after)
  await differing.says('Password: ')
  differing.type('typed in secret\r')
  await differing.says('Again: ')
  differing.type('typed in secrte\r')
  t.notMatch(await differing.says('The passwords do not match.'), 'argon2id')
  t.equal((await differing.ended).code, 1)
  const left = prompt(t.after)
  await left.says('Password: ')
  left.type('\u0003')
  t.not((await left.ended).code, 0)
})
