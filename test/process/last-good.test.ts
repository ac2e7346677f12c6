/** A start beside config files that were broken since: with the config that ran last. */
import { readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { stringify } from 'yaml'
import { runProcess } from '../support/command.ts'
import { configFolder } from '../support/gateway.ts'
import { startGatewayProcess } from '../support/gateway-process.ts'
import { temporaryFolder } from '../support/temporary.ts'
import { testUpstream } from '../support/upstream.ts'
import { until } from '../support/until.ts'

const open = { access: 'public', upstream: 'b', shape: 'own' }

t.test('start --last-good serves with the config of before, until it is mended', async t => {
  const backend = await testUpstream(t.after)
  const state = join(temporaryFolder(), 'new')
  const routes = (names: readonly string[]) => ({
    upstreams: { b: { url: backend.url } },
    routes: Object.fromEntries(names.map(name => [name, { ...open, path: `/api/${name}` }])),
    shapes: { own: [{ module: './own.js' }] }
  })
  const folder = await configFolder({
    gateway: { reload: { watch: true } },
    routes: routes(['a']),
    code: { 'own.js': "export default () => 'first'" }
  })
  const write = (text: string) => writeFileSync(join(folder, 'routes.yaml'), text)
  const words = ['start', '--config', folder, '--state', state]
  const begin = async (...more: string[]) =>
    await startGatewayProcess(t.after, folder, { more: ['--state', state, ...more] })

  const first = await begin()
  write(stringify(routes(['a', 'b'])))
  await first.opsJson('reload', {})
  t.equal(await first.status('/api/b'), 200)
  await first.stop()
  t.same(readdirSync(state), ['last-good.json'])
  const file = join(state, 'last-good.json')
  t.notMatch(readFileSync(file, 'utf8'), readFileSync(join(folder, 'session-secret'), 'utf8'))
  t.equal(statSync(file).mode & 0o777, 0o600)

  write('routes: { a: { pfad: /api/a, answer: {} } }')
  writeFileSync(join(folder, 'own.js'), "export default () => 'second'")
  t.match(await runProcess(words), { code: 1, err: 'unknown key "pfad"' }, 'not without the option')
  const second = await begin('--last-good')
  const log = await second.says('listening on')
  t.match(log, /"event":"config.last-good".*accepted at 20/)
  t.match(log, /"event":"config.refused".*unknown key/)
  t.equal(
    (await second.call('/api/b')).text,
    '"first"',
    'what was accepted last is served, own code too'
  )
  t.match(await second.ask('/readyz'), { status: 200, text: /the files were refused at/ })
  t.match(await second.opsJson('status'), {
    files: { state: 'refused' },
    taken: { by: 'start --last-good' }
  })
  t.match(await second.metrics(), /^console_gateway_config_refused 1$/m)

  write(stringify(routes(['a', 'b', 'c'])))
  await until('the mended files are taken', async () => (await second.status('/api/c')) === 200)
  t.match(await second.opsJson('status'), { files: { state: 'running' } })
  await second.stop()

  writeFileSync(file, 'no JSON')
  write('routes: []')
  t.match(await runProcess([...words, '--last-good']), { code: 1, err: 'routes: expected' })
})
