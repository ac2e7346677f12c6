/** A signal to npm, which passes it on to its shell only, ends the gateway. */
import { once } from 'node:events'
import { mkdirSync, symlinkSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { runningLine } from '../support/command.ts'
import { configFolder } from '../support/gateway.ts'
import { until } from '../support/until.ts'
import { testUpstream } from '../support/upstream.ts'

const program = resolve('bin/console-gateway.js')
const environment = {
  ...process.env,
  PATH: `${resolve('node_modules/node/bin')}:${process.env['PATH'] ?? ''}`,
  // Not below the folder of the test, which goes with it.
  NODE_COMPILE_CACHE: resolve('node_modules/.cache/compiled'),
  // No process of this test is npm's script.
  npm_lifecycle_script: undefined
}

/** A gateway with a request in flight. */
async function started(t: Test, line: (folder: string) => string, cwd = '.') {
  const release = Promise.withResolvers<void>()
  const backend = await testUpstream(t.after, async (_request, response) => {
    await release.promise
    response.end('{"done":true}')
  })
  const folder = await configFolder({
    gateway: { drain: { grace: '20s' } },
    backend: backend.url,
    routes: { routes: { slow: { access: 'public' } } }
  })
  const running = runningLine(t.teardown, line(folder), { cwd, env: environment })
  const said = await running.says('"listening on ')
  const [, url = '', opsUrl = ''] = /"url":"([^"]+)","ops":"([^"]+)"/.exec(said) ?? []
  const slow = `${url}/api/slow`
  const inFlight = fetch(slow, { headers: { connection: 'close' } })
  await until('the back-end is asked', () => backend.begun() === 1)
  const finish = async () => {
    release.resolve()
    t.same(await (await inFlight).json(), { done: true }, 'the request in flight is answered')
  }
  return { ...running, urls: [url, opsUrl], slow, finish }
}

/** A folder whose command `console-gateway` is that of this checkout. */
function installed(t: Test): string {
  const place = t.testdir({ 'package.json': '{"private": true}' })
  const bin = join(place, 'node_modules/.bin')
  mkdirSync(bin, { recursive: true })
  symlinkSync(program, join(bin, 'console-gateway'))
  return place
}

for (const [title, signal, command] of [
  ['SIGTERM to npx', 'SIGTERM', 'npx console-gateway start'],
  ['SIGTERM to npm start', 'SIGTERM', 'npm start --'],
  ['SIGINT to all of npx, as a terminal sends it,', 'SIGINT', 'npx console-gateway start']
] as const) {
  t.test(`case U10: ${title} drains the gateway and frees its ports`, async t => {
    const cwd = command.startsWith('npx') ? installed(t) : '.'
    const line = (folder: string) => `exec ${command} --config ${folder}`
    const { pid, urls, finish, says, written } = await started(t, line, cwd)
    process.kill(signal === 'SIGINT' ? -pid : pid, signal)
    await says('stopping: not ready')
    await finish()
    await until('both ports are free', async () => {
      const asked = await Promise.allSettled(urls.map(url => fetch(url)))
      return asked.every(({ status }) => status === 'rejected')
    })
    await says('"msg":"stopped"')
    t.notMatch(written(), /a second SIG|still running/)
  })
}

t.test('case U10: a gateway that a shell leaves behind goes on', async t => {
  // An npm script that ends by itself, and a shell in a terminal that npm has opened.
  for (const [script, waits] of [
    ['nohup console-gateway start &', ''],
    ['bash', 'read -r _']
  ]) {
    const { child, slow, finish, written } = await started(t, folder => {
      const start = `nohup node ${program} start --config ${folder}`
      return `npm_lifecycle_script='${script}' ${start} & ${waits}`
    })
    child.stdin.end()
    if (child.exitCode === null) await once(child, 'exit')
    await finish()
    // Longer than it would take to notice that its parent has ended.
    await wait(2500)
    t.equal((await fetch(slow)).status, 200)
    t.notMatch(written(), /stopping/)
  }
})
