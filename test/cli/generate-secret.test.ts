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

t.test('a file is of its owner alone, and never overwritten, also by several at once', async t => {
  const file = join(folder, 'once')
  const ran = await Promise.all(Array.from({ length: 4 }, () => generate(file)))
  t.ok(ran.every(({ code, out }) => code === 0 && out === ''))
  t.equal(ran.filter(({ err }) => err === `wrote ${file}\n`).length, 1)
  t.equal(statSync(file).mode & 0o777, 0o600)
  const written = readFileSync(file, 'utf8')
  t.match(written, secret)
  t.match(await generate(file), { code: 0, out: none, err: `${file} exists and was not changed\n` })
  t.equal(readFileSync(file, 'utf8'), written)
  const config =
    'server: { hosts: [h], trustedProxies: [10.0.0.0/8] }\nsession: { secrets: ["file:one"] }'
  t.same(faultsOf(textFolder(t.after, { 'gateway.yaml': config, 'one': written })), [])
})

t.test('where no file can be the error is one line; a full disk leaves no empty one', async t => {
  const ran = await generate(join(folder, 'nowhere', 'secret'))
  t.match(ran, { code: 1, out: none, err: /^ENOENT: .*\n$/ })
  const file = join(folder, 'full')
  const full = await runProcess(['generate-secret', file], { maxFileBlocks: 0 })
  t.match(full, { code: 1, out: none, err: /^EFBIG: .*\n$/ })
  t.notOk(existsSync(file))
})
