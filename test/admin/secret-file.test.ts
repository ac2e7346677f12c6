import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import t, { type Test } from 'tap'
import { readSecretFiles, writeSecretFile } from '../../src/admin/secret-file.ts'
import { run, start } from '../support/command.ts'
import { configFolder } from '../support/gateway.ts'
import { freePort } from '../support/ports.ts'

const uid = process.getuid?.() ?? 0

/** A `XDG_RUNTIME_DIR` and a temporary folder of this test's own. */
function places(t: Test): { readonly runtime: string; readonly temporary: string } {
  const [runtime, temporary] = ['run-', 'tmp-'].map(name => mkdtempSync(join(tmpdir(), name))) as [
    string,
    string
  ]
  const before = { XDG_RUNTIME_DIR: process.env['XDG_RUNTIME_DIR'], TMPDIR: process.env['TMPDIR'] }
  Object.assign(process.env, { XDG_RUNTIME_DIR: runtime, TMPDIR: temporary })
  t.teardown(() => {
    for (const [name, value] of Object.entries(before)) {
      if (value === undefined) delete process.env[name]
      else process.env[name] = value
    }
    for (const folder of [runtime, temporary]) rmSync(folder, { recursive: true, force: true })
  })
  return { runtime, temporary }
}

t.test(
  'the file is its owner’s alone, in a folder that is too, and goes with the gateway',
  async t => {
    const { runtime } = places(t)
    const left = writeSecretFile('127.0.0.1:1', 'first')
    t.equal(dirname(left.file), join(runtime, 'console-gateway'))
    t.equal(statSync(left.file).mode & 0o777, 0o600)
    t.equal(statSync(dirname(left.file)).mode & 0o777, 0o700)
    t.same(readSecretFiles('127.0.0.1:1'), ['first'])
    t.same(readSecretFiles('127.0.0.1:2'), [], 'another address has another file')
    left.remove()
    t.same(readdirSync(dirname(left.file)), [])
  }
)

t.test(
  'what a gateway that was killed left is replaced, and a file that is another gateway’s by now stays',
  async t => {
    places(t)
    const killed = writeSecretFile('[::1]:9090', 'of the killed one')
    const next = writeSecretFile('[::1]:9090', 'of the next one')
    t.equal(next.file, killed.file)
    killed.remove()
    t.same(readSecretFiles('[::1]:9090'), ['of the next one'])
    next.remove()
    t.notOk(existsSync(next.file))
  }
)

t.test(
  'a folder that others can enter, a link, and one that cannot be made are passed over',
  async t => {
    const { runtime, temporary } = places(t)
    mkdirSync(join(runtime, 'console-gateway'))
    chmodSync(join(runtime, 'console-gateway'), 0o755)
    writeFileSync(join(runtime, 'console-gateway', 'ops-127.0.0.1_1.secret'), 'planted')
    t.same(readSecretFiles('127.0.0.1:1'), [], 'what stands in it is not believed')
    const left = writeSecretFile('127.0.0.1:1', 'mine')
    t.equal(dirname(left.file), join(temporary, `console-gateway-${uid}`))
    t.same(readSecretFiles('127.0.0.1:1'), ['mine'])
    left.remove()

    rmSync(join(runtime, 'console-gateway'), { recursive: true })
    mkdirSync(join(runtime, 'elsewhere'), { mode: 0o700 })
    symlinkSync('elsewhere', join(runtime, 'console-gateway'))
    const other = writeSecretFile('127.0.0.1:1', 'mine')
    t.equal(dirname(dirname(other.file)), temporary)
    other.remove()

    Object.assign(process.env, {
      XDG_RUNTIME_DIR: join(runtime, 'not-there'),
      TMPDIR: join(temporary, 'not-there')
    })
    t.throws(() => writeSecretFile('127.0.0.1:1', 'nowhere'), { code: 'ENOENT' })
  }
)

t.test(
  'a gateway leaves its secret where commands find it, takes it away at its end, and serves without',
  async t => {
    const { temporary } = places(t)
    const folder = await configFolder({
      gateway: { ops: { listen: `127.0.0.1:${await freePort()}` } }
    })
    const gateway = start(t.after, folder, { TMPDIR: temporary })
    await gateway.says('listening on')
    const shared = join(temporary, `console-gateway-${uid}`)
    t.equal(readdirSync(shared).length, 1)
    t.match(await run(['status', '--config', folder], { env: { TMPDIR: temporary } }), { code: 0 })
    gateway.signal('SIGTERM')
    t.same(await gateway.ended, { code: 0, signal: null })
    t.same(readdirSync(shared), [])

    const nowhere = start(t.after, folder, { TMPDIR: join(temporary, 'not-there') })
    const said = await nowhere.says('listening on')
    t.match(said, /the generated one cannot be written to a file/)
    nowhere.signal('SIGTERM')
    t.same(await nowhere.ended, { code: 0, signal: null })
  }
)
