import { PassThrough, Readable } from 'node:stream'
import t from 'tap'
import { runCli } from '../../src/cli/main.ts'
import { run } from '../support/command.ts'
import { configFolder, testGateway } from '../support/gateway.ts'
import { freePort } from '../support/ports.ts'

const folder = await configFolder({
  gateway: { ops: { listen: `127.0.0.1:${await freePort()}` } }
})
const gateway = await testGateway(t.after, folder)

t.test('operators block users, see them, and let them in again', async t => {
  await gateway.signIn('alice')
  for (const [line, code, out] of [
    ['blocked', 0, /^nobody is blocked\n$/],
    ['block alice', 0, /^blocked: alice; sessions closed: 1\n$/],
    ['block bob --for 2h --source users-file', 0, /^blocked: bob until 20\S+Z; sessions closed: 0/],
    ['blocked', 0, /^USER +SOURCE +UNTIL\nalice +any +unblocked\nbob +users-file +20\S+Z\n$/],
    ['blocked --json', 0, /"name": "alice"/],
    ['unblock bob', 0, /^unblocked: bob\n$/],
    ['unblock bob', 3, /No such block/],
    ['unblock alice --source users-file', 3, /No such block/],
    ['unblock alice', 0, /^unblocked: alice\n$/],
    ['block', 2, /missing required argument 'user'/],
    ['block a b', 2, /Not understood: "b"/],
    ['blocked alice', 2, /Not understood: "alice"/],
    ['block alice --for ever', 2, /"ever" is no duration/],
    ['block alice --source none', 1, /no credential source "none"/],
    ['block alice --role x', 2, /unknown option '--role'/],
    ['add carol --url http://x', 2, /unknown option '--url'/]
  ] as const) {
    const ran = await run(['users', ...line.split(' '), '--config', folder])
    t.match([ran.code, ran.out + ran.err], [code, out], line)
  }
})

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
    const words = ['sessions', 'close', '--everyone', '--config', folder]
    t.equal(await runCli(words, io), code, typed)
    t.match(String(stderr.read()), /Sign out everyone \(1 user\)\?/)
  }
})

t.end()
