/** What images run: `npm run build`, and the gateway that it makes, with each part that is a file, a thread, a process or a package of its own. */
import { mkdirSync, writeFileSync } from 'node:fs'
import t from 'tap'
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
  shapes: { counted: [{ jsonata: `{ "${name}": $count(list) }` }, { wrap: 'envelope' }] },
  examples: {
    counted: {
      shape: 'counted',
      input: { list: [1, 2] },
      output: { ok: true, success: true, code: 0, message: 'OK', data: { [name]: 2 } }
    }
  }
})

t.test(
  'what was built signs in, shapes, serves the console, reloads, tells operators, and ends well',
  async t => {
    const build = running(t.after, process.execPath, ['build.js'])
    t.same(await build.ended, { code: 0, signal: null }, await build.says('').catch(String))
    const backend = await testUpstream(t.after, json(200, { list: ['a', 'b', 'c'] }))
    const redis = await testRedis(t.after)
    for (const workers of [1, 2]) {
      const folder = await configFolder({
        gateway: {
          server: { listen: '127.0.0.1:0', workers },
          ops: { listen: '127.0.0.1:0' },
          redis: { url: redis.url, prefix: `${workers}:`, commandTimeout: '20s' },
          session: { secrets: ['${SESSION_SECRET}'] },
          console: { root: 'console' },
          log: { format: workers === 1 ? 'json' : 'pretty' }
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
