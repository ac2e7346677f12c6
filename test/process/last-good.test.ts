/** A start beside config files that were broken since: with the config that ran last. */
import { readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { stringify } from 'yaml'
import { program, running, runProcess } from '../support/command.ts'
import { configFolder } from '../support/gateway.ts'
import { askOps, opsJson } from '../support/ops.ts'
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
  let [url, opsUrl] = ['', '']
  const begin = async (...more: string[]) => {
    const begun = running(t.after, process.execPath, [program, ...words, ...more])
    ;({ url, opsUrl } = await begun.listens())
    return begun
  }
  const status = async (path: string) => (await fetch(`${url}/api/${path}`)).status
  const told = async () => await opsJson(opsUrl, 'status')

  const first = await begin()
  write(stringify(routes(['a', 'b'])))
  await opsJson(opsUrl, 'reload', {})
  t.equal(await status('b'), 200)
  first.signal('SIGTERM')
  await first.ended
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
  const served = await fetch(`${url}/api/b`)
  t.equal(await served.text(), '"first"', 'what was accepted last is served, own code too')
  const readiness = await askOps(opsUrl, '/readyz')
  t.match(
    { status: readiness.status, text: await readiness.text() },
    { status: 200, text: /the files were refused at/ }
  )
  t.match(await told(), { files: { state: 'refused' }, taken: { by: 'start --last-good' } })
  t.match(await (await askOps(opsUrl, '/metrics')).text(), /^console_gateway_config_refused 1$/m)

  write(stringify(routes(['a', 'b', 'c'])))
  await until('the mended files are taken', async () => (await status('c')) === 200)
  t.match(await told(), { files: { state: 'running' } })
  second.signal('SIGTERM')
  await second.ended

  writeFileSync(file, 'no JSON')
  write('routes: []')
  t.match(await runProcess([...words, '--last-good']), { code: 1, err: 'routes: expected' })
})
