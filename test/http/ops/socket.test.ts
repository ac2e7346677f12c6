/** The Unix socket by which commands on this machine ask a gateway. */
import { once } from 'node:events'
import { existsSync, mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { type IncomingMessage, request } from 'node:http'
import { join } from 'node:path'
import { json } from 'node:stream/consumers'
import t, { type Test } from 'tap'
import { run, runProcess } from '../../support/command.ts'
import { configFolder, testGateway } from '../../support/gateway.ts'
import { startGatewayProcess } from '../../support/gateway-process.ts'
import { callOps } from '../../support/operator.ts'
import { testRedis } from '../../support/redis.ts'
import { temporaryFolder } from '../../support/temporary.ts'

const modeOf = (file: string) => (statSync(file).mode & 0o777).toString(8)

/** A config folder whose gateways have their sockets in a folder of their own. */
async function place(t: Test, ops: object = {}, more: object = {}) {
  const sockets = join(temporaryFolder(), 'sockets')
  const folder = await configFolder({ gateway: { ops: { socket: sockets, ...ops } }, ...more })
  const command = async (...words: string[]) => await run([...words, '--config', folder])
  return { sockets, folder, command, begin: async () => await testGateway(t.after, folder) }
}

t.test('the socket is its owner’s, asks for no secret, and goes with the gateway', async t => {
  const { sockets, command, begin } = await place(t)
  const gateway = await begin()
  const [name = ''] = readdirSync(sockets)
  t.match(name, /^console-gateway-[0-9a-f]{8}-[0-9a-f]{8}\.sock$/)
  t.same([modeOf(sockets), modeOf(join(sockets, name))], ['700', '600'])
  const asked = request({ socketPath: join(sockets, name), path: '/ops/api/me' }).end()
  const [response] = (await once(asked, 'response')) as [IncomingMessage]
  t.same(await json(response), { name: 'local', via: 'socket' })
  t.match(await command('status'), { code: 0, out: /^gateway +\d/, err: '' })
  t.equal((await callOps(gateway.opsUrl, '/ops/api/me', {})).status, 401, 'loopback is no right')
  await gateway.stop()
  t.same(readdirSync(sockets), [])
  t.match(await command('status'), {
    code: 1,
    err: /^No gateway with the config folder .* runs here/
  })
})

t.test('of several processes each is asked and named; those of other configs are not', async t => {
  const { sockets, command, begin } = await place(t)
  await Promise.all([begin(), begin()])
  await testGateway(t.after, await configFolder({ gateway: { ops: { socket: sockets } } }))
  t.equal(readdirSync(sockets).length, 3)
  const { code, out, err } = await command('status')
  t.equal(code, 0)
  t.equal(out.match(/^gateway /gm)?.length, 2)
  t.equal(err.match(/^process [0-9a-f]{8}:$/gm)?.length, 2)
  t.match(await command('users', 'block', 'bob'), { code: 0 })
  t.match(await run(['status', '--config', '/nowhere']), { code: 1, err: /no folder \/nowhere/ })
})

t.test('what several processes share in Redis is listed and ended once', async t => {
  const { url } = await testRedis(t.after)
  const { command, begin } = await place(t, {}, { redis: { url, commandTimeout: '30s' } })
  const [one, other] = await Promise.all([begin(), begin()])
  await Promise.all([one.ready(), other.ready()])
  await one.signIn('alice')
  await other.signIn('alice')
  const ended = { code: 0, out: 'closed: 2\n', err: '' }
  t.match(await command('sessions', 'close', 'alice'), ended)
  t.match(await command('users', 'block', 'bob'), { code: 0 })
  t.match(await command('users', 'unblock', 'bob'), { code: 0, out: 'unblocked: bob\n', err: '' })
})

t.test('a socket that a killed process left is removed by the next', async t => {
  const { sockets, folder, command, begin } = await place(t)
  const { kill } = await startGatewayProcess(t.after, folder)
  await kill()
  const [left = ''] = readdirSync(sockets)
  t.match(await command('status'), { code: 1, err: /No gateway/ })
  await begin()
  t.notOk(existsSync(join(sockets, left)))
  t.match(await command('status'), { code: 0, err: '' })
})

t.test('a folder that others can enter is closed to them, or not used', async t => {
  const { sockets, command, begin } = await place(t)
  mkdirSync(sockets, { mode: 0o755 })
  t.match(await command('status'), { code: 1 }, 'what stands in it is not believed')
  await begin()
  t.equal(modeOf(sockets), '700')
  t.match(await command('status'), { code: 0 })
  const shared = await place(t)
  mkdirSync(shared.sockets, { mode: 0o755 })
  writeFileSync(join(shared.sockets, 'of-others'), '')
  await shared.begin()
  t.equal(modeOf(shared.sockets), '755')
  t.match(await shared.command('status'), { code: 1 })
})

t.test('without a place the gateway starts, with a warning; with false it wants none', async t => {
  const file = join(temporaryFolder(), 'taken')
  writeFileSync(file, '')
  const taken = await place(t, { socket: file })
  const gateway = await taken.begin()
  t.match(await gateway.logged(({ msg }) => String(msg).startsWith('no folder can be used')), {
    level: 'warn',
    folders: [file]
  })
  t.match(await taken.command('status'), { code: 1, err: /No gateway/ })
  const none = await place(t, { socket: false })
  const silent = await none.begin()
  t.notOk(silent.log.some(({ msg }) => /socket/.test(String(msg))))
  t.match(await none.command('status'), { code: 1, err: /ops\.socket is false.*--url/ })
})

t.test('the command ops prints a link that opens the page', async t => {
  const { folder, begin } = await place(t)
  const { opsUrl } = await begin()
  const { code, out, err } = await runProcess(['ops', '--config', folder])
  t.equal(code, 0)
  t.match(err, /once, within two minutes/)
  const link = out.trim()
  t.ok(link.startsWith(`${opsUrl}/ops/link/`))
  t.match(await callOps(opsUrl, link.slice(opsUrl.length), {}), {
    status: 303,
    headers: { 'set-cookie': [/^console_ops=/] }
  })
})
