/** What images run: `npm run build`, and the gateway that it makes, with each part that is a file, a thread or a package of its own. */
import { cpSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import t, { type Test } from 'tap'
import { stringify } from 'yaml'
import { run, running } from '../support/command.ts'
import { configFolder, password } from '../support/gateway.ts'
import { askOps } from '../support/ops.ts'
import { testRedis } from '../support/redis.ts'
import { until } from '../support/until.ts'
import { json, testUpstream } from '../support/upstream.ts'

const environment = { SESSION_SECRET: 'a secret of at least thirty-two characters' }
const routes = (url: string, name: string) => ({
  upstreams: { b: { url } },
  routes: { shaped: { path: '/api/shaped', upstream: 'b', shape: 'counted' } },
  shapes: {
    counted: [{ unwrap: 'list' }, { nest: { as: 'list', count: name } }, { wrap: 'envelope' }]
  }
})

t.test(
  'what was built signs in, shapes, serves the console, reloads, tells operators, and ends well',
  async t => {
    const build = running(t.after, process.execPath, ['build.js'])
    t.same(await build.ended, { code: 0, signal: null }, await build.says('').catch(String))
    const backend = await testUpstream(t.after, json(200, { list: ['a', 'b', 'c'] }))
    const redis = await testRedis(t.after)
    for (const format of ['json', 'pretty'] as const) {
      const folder = await configFolder({
        gateway: {
          server: { listen: '127.0.0.1:0' },
          ops: { listen: '127.0.0.1:0' },
          redis: { url: redis.url, prefix: `${format}:`, commandTimeout: '20s' },
          session: { secrets: ['${SESSION_SECRET}'] },
          console: { root: 'console' },
          log: { format }
        }
      })
      mkdirSync(`${folder}/console`)
      writeFileSync(`${folder}/console/index.html`, '<!doctype html><title>Console</title>')
      const write = (name: string) =>
        writeFileSync(`${folder}/routes.yaml`, stringify(routes(backend.url, name)))
      write('before')
      const gateway = running(
        t.after,
        process.execPath,
        ['dist/launch.js', 'start', '--config', folder],
        environment
      )
      const said = await gateway.says('for operators on http://')
      const [, url = '', ops = ''] =
        /listening on (http:\S+?),? .*for operators on (http:\/\/[\d.:]+)/.exec(said) ?? []
      await until('ready', async () => (await fetch(`${ops}/readyz`)).status === 200)
      t.match(
        await (await fetch(`${url}/`, { headers: { accept: 'text/html' } })).text(),
        '<title>Console</title>'
      )
      const { headers, status } = await fetch(`${url}/api/auth/admin/login`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ username: 'alice', password })
      })
      t.equal(status, 200)
      const call = async () =>
        (await (
          await fetch(`${url}/api/shaped`, {
            headers: { cookie: headers.getSetCookie()[0]?.split(';')[0] ?? '' }
          })
        ).json()) as object
      t.match(await call(), { data: { before: 3 } })
      write('after')
      gateway.signal('SIGHUP')
      await gateway.says('config reloaded')
      t.match(await call(), { data: { after: 3 } })
      t.match(
        await (await askOps(ops, '/metrics')).text(),
        /^console_gateway_requests_total\{.*route="shaped".*\} \d/m
      )
      const page = await (await fetch(`${ops}/ops/`)).text()
      for (const [, path = ''] of page.matchAll(/(?:src|href)="([^"]+)"/g)) {
        t.equal((await fetch(ops + path)).status, 200, path)
      }
      t.match(page, /<script type="module" src="[^"]+\/live\.js"/)
      gateway.signal('SIGTERM')
      t.same(await gateway.ended, { code: 0, signal: null })
    }
  }
)

t.test('its commands are those of the sources', async t => {
  const [built, sources] = [
    running(t.after, process.execPath, ['dist/launch.js', 'help']),
    await run(['help'])
  ]
  t.same(await built.ended, { code: 0, signal: null })
  t.equal(await built.says(''), sources.out)
})

/** The output of a preset's file as a program prints it, from a folder that has it and its packages. */
async function shownBy(t: Test, program: string, folder: string): Promise<string> {
  symlinkSync(resolve('node_modules'), join(folder, 'node_modules'))
  const shown = running(t.after, process.execPath, [
    join(folder, program),
    'presets',
    'show',
    'drf'
  ])
  t.same(await shown.ended, { code: 0, signal: null })
  return shown.says('')
}

t.test('what npm packs has the presets', async t => {
  const folder = t.testdir({})
  const words = ['pack', '--ignore-scripts', '--silent', '--pack-destination', folder]
  t.same(await running(t.after, 'npm', words).ended, { code: 0, signal: null })
  const [tarball = ''] = readdirSync(folder)
  const unpacked = running(t.after, 'tar', ['-xzf', join(folder, tarball), '-C', folder])
  t.same(await unpacked.ended, { code: 0, signal: null })
  const text = readFileSync('presets/backend/drf.yaml', 'utf8')
  t.equal(await shownBy(t, 'bin/console-gateway.js', join(folder, 'package')), text)
  const files = readdirSync(join(folder, 'package/dist'))
  t.ok(['page.css', 'live.js', 'icon.svg'].every(name => files.includes(name)))
})

t.test('what the image copies has the presets', async t => {
  const context = readFileSync('.dockerignore', 'utf8').split('\n')
  const folder = t.testdir({})
  const copied = [
    ...readFileSync('Dockerfile', 'utf8').matchAll(/^COPY (?:--from=(\w+) )?(.+) (\S+)$/gm)
  ]
  const lastStage = copied.slice(copied.findIndex(([, stage]) => stage === 'dependencies'))
  for (const [, stage, sources = '', target = ''] of lastStage) {
    for (const source of sources.split(' ').map(each => each.replace('/app/', ''))) {
      if (source === 'node_modules') continue
      t.ok(stage !== undefined || context.includes(`!${source}`), `.dockerignore: ${source}`)
      cpSync(source, join(folder, target.endsWith('/') ? source : target), { recursive: true })
    }
  }
  const text = readFileSync('presets/backend/drf.yaml', 'utf8')
  t.equal(await shownBy(t, 'bin/console-gateway.js', folder), text)
})
