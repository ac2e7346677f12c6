/** `sessions close --everyone` at a terminal. */
import { PassThrough, Readable } from 'node:stream'
import t from 'tap'
import { runCli } from '../../src/cli/main.ts'
import { testGateway } from '../support/gateway.ts'

const gateway = await testGateway(t.after)

t.test('all are signed out only after a yes', async t => {
  for (const [typed, code] of [
    ['\r', 1],
    ['n', 1],
    ['y', 0]
  ] as const) {
    await gateway.signIn('bob')
    const stderr = new PassThrough()
    const keys = Readable.from([Buffer.from(typed)])
    const stdin = Object.assign(keys, { isTTY: true, setRawMode: () => {} })
    const io = { env: { ...process.env }, stdin, stdout: new PassThrough(), stderr }
    const words = ['sessions', 'close', '--everyone', '--config', gateway.folder]
    t.equal(await runCli(words, io), code, typed)
    t.match(String(stderr.read()), /Sign out everyone \(1 user\)\?/)
  }
})

t.end()
