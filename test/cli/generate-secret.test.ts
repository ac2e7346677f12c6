import { existsSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { run, runProcess } from '../support/command.ts'
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

t.test('written to a file, only its owner may read it', async t => {
  const file = join(folder, 'new')
  t.same(await generate(file), { code: 0, out: '', err: `wrote ${file}\n` })
  t.equal(statSync(file).mode & 0o777, 0o600)
  t.match(readFileSync(file, 'utf8'), secret)
})

t.test('a file that is there is never overwritten, also by several at once', async t => {
  const file = join(folder, 'once')
  const ran = await Promise.all(Array.from({ length: 4 }, () => generate(file)))
  t.ok(ran.every(({ code, out }) => code === 0 && out === ''))
  t.equal(ran.filter(({ err }) => err === `wrote ${file}\n`).length, 1)
  const before = readFileSync(file, 'utf8')
  t.match(await generate(file), { code: 0, out: none, err: `${file} exists and was not changed\n` })
  t.equal(readFileSync(file, 'utf8'), before)
})

t.test('a place where no file can be is an error in one line', async t => {
  const ran = await generate(join(folder, 'nowhere', 'secret'))
  t.match(ran, { code: 1, out: none, err: /^ENOENT: .*\n$/ })
})

t.test('on a full disk no empty file is left, which the next call would keep', async t => {
  const file = join(folder, 'full')
  const ran = await runProcess(['generate-secret', file], { maxFileBlocks: 0 })
  t.match(ran, { code: 1, out: none, err: /^EFBIG: .*\n$/ })
  t.notOk(existsSync(file))
})

t.test('what was written is a secret that config takes', async t => {
  const config = textFolder(t.after, {
    'gateway.yaml':
      'server: { hosts: [h], trustedProxies: [10.0.0.0/8] }\nsession: { secrets: ["file:session-secret"] }'
  })
  await generate(join(config, 'session-secret'))
  t.same(faultsOf(config), [])
})
