import { existsSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { run, runProcess } from '../support/command.ts'
import { faultsOf, textFolder } from '../support/config-files.ts'

const folder = mkdtempSync(join(tmpdir(), 'gateway-secret-'))
t.teardown(() => rmSync(folder, { recursive: true, force: true }))

t.test('a secret is 32 random bytes in one line, and another each time', async t => {
  const [one, other] = [await run(['generate-secret']), await run(['generate-secret'])]
  t.match(one, { code: 0, out: /^[A-Za-z0-9_-]{43}\n$/, err: '' })
  t.not(one.out, other.out)
})

t.test('written to a file, only its owner may read it', async t => {
  const file = join(folder, 'new')
  t.same(await run(['generate-secret', file]), { code: 0, out: '', err: `wrote ${file}\n` })
  t.equal(statSync(file).mode & 0o777, 0o600)
  t.match(readFileSync(file, 'utf8'), /^[A-Za-z0-9_-]{43}\n$/)
})

t.test('a file that is there is never overwritten, also by several at once', async t => {
  const file = join(folder, 'once')
  const ran = await Promise.all(Array.from({ length: 4 }, () => run(['generate-secret', file])))
  t.ok(ran.every(({ code, out }) => code === 0 && out === ''))
  t.equal(ran.filter(({ err }) => err === `wrote ${file}\n`).length, 1)
  const before = readFileSync(file, 'utf8')
  t.same(await run(['generate-secret', file]), {
    code: 0,
    out: '',
    err: `${file} exists and was not changed\n`
  })
  t.equal(readFileSync(file, 'utf8'), before)
})

t.test('a place where no file can be is an error in one line', async t => {
  const { code, out, err } = await run(['generate-secret', join(folder, 'nowhere', 'secret')])
  t.same({ code, out }, { code: 1, out: '' })
  t.match(err, /^ENOENT: .*\n$/)
})

t.test('on a full disk no empty file is left, which the next call would keep', async t => {
  const file = join(folder, 'full')
  const { code, out, err } = await runProcess(['generate-secret', file], { maxFileBlocks: 0 })
  t.same({ code, out }, { code: 1, out: '' })
  t.match(err, /^EFBIG: .*\n$/)
  t.notOk(existsSync(file))
})

t.test('what was written is a secret that config takes', async t => {
  const config = textFolder(t.after, {
    'gateway.yaml':
      'server: { hosts: [h], trustedProxies: [10.0.0.0/8] }\nsession: { secrets: ["file:session-secret"] }'
  })
  await run(['generate-secret', join(config, 'session-secret')])
  t.same(faultsOf(config), [])
})
