import { PassThrough, Readable } from 'node:stream'
import t from 'tap'
import { runCli } from '../../src/cli/main.ts'
import { run } from '../support/command.ts'
import { testGateway } from '../support/gateway.ts'

const gateway = await testGateway(t.after)

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
    ['block alice --for ever', 2, /"ever" is no duration/],
    ['block alice --source none', 1, /no credential source "none"/]
  ] as const) {
    const ran = await run(['users', ...line.split(' '), '--config', gateway.folder])
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
    const words = ['sessions', 'close', '--everyone', '--config', gateway.folder]
    t.equal(await runCli(words, io), code, typed)
    t.match(String(stderr.read()), /Sign out everyone \(1 user\)\?/)
  }
})

t.end()
