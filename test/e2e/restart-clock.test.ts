/** Without Redis: what goes to a new process after the wall clock was set, and while it is. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import t, { type Test } from 'tap'
import { configFolder, password } from '../support/gateway.ts'
import { callOnce, opsSecret } from '../support/gateway-process.ts'
import { startRestartable } from '../support/restartable.ts'
import { cookieIn } from '../support/sign-in.ts'
import { testUpstream } from '../support/upstream.ts'

const hour = 3_600_000
const day = 24 * hour

async function open(t: Test) {
  const upstream = await testUpstream(t.after)
  const folder = await configFolder({
    gateway: {
      ops: { listen: '127.0.0.1:0', secret: '${OPS_SECRET}' },
      server: { listen: '127.0.0.1:0' },
      session: { idle: '1h', absolute: '2h' }
    },
    routes: {
      upstreams: { b: { url: upstream.url } },
      routes: { mine: { path: '/api/mine', upstream: 'b' } }
    },
    limits: {
      limits: { few: { by: 'user', max: 600, window: '1h' } },
      lockout: { account: { after: 1, delay: '1h', longest: '1h' }, address: { mode: 'off' } }
    }
  })
  const clock = mkdtempSync(join(tmpdir(), 'clock-'))
  const shift = join(clock, 'shift')
  const setClock = (ms: number) => writeFileSync(shift, String(ms))
  setClock(0)
  t.after(() => {
    for (const each of [folder, clock]) rmSync(each, { recursive: true, force: true })
  })
  const gateway = await startRestartable(t.after, {
    folder,
    environment: {
      OPS_SECRET: opsSecret,
      NODE_OPTIONS: `--import=${resolve('test/support/shift-clock.ts')}`,
      CLOCK_SHIFT_FILE: shift
    }
  })
  const signIn = async (username: string, pass: string) =>
    await callOnce(`${gateway.url}/api/auth/admin/login`, { json: { username, password: pass } })
  const ops = async (path: string) => JSON.parse((await gateway.ask(`/ops/api/${path}`)).body)
  return { gateway, setClock, signIn, ops }
}

t.test('sessions, limits and lockouts go on as if the clock had not been set', async t => {
  const { gateway, setClock, signIn, ops } = await open(t)
  const cookie = cookieIn((await signIn('alice', password)).headers['set-cookie'])
  await signIn('bob', 'wrong')
  const mine = async () => await callOnce(`${gateway.url}/api/mine`, { headers: { cookie } })
  t.match(await mine(), { status: 200 })

  for (const ms of [day, -day]) {
    setClock(ms)
    t.match(await gateway.restart(), { outcome: 'restarted' })
    const { status, headers } = await mine()
    t.equal(status, 200, 'the session lives')
    const left = Number(headers['x-session-absolute-in'])
    t.ok(left > 0 && left <= 7200, `${left} s`)
    const reset = Number(/t=(\d+)/.exec(String(headers['ratelimit']))?.[1])
    t.ok(reset > 0 && reset <= 3600, `the limit is free again in ${reset} s`)
    const locked = await signIn('bob', password)
    t.equal(locked.status, 429, 'the lock holds')
    t.ok(Number(locked.headers['retry-after']) <= 3600, String(locked.headers['retry-after']))
    const until = Date.parse((await ops('lockouts')).lockouts[0].until) - (Date.now() + ms)
    t.ok(until > 0 && until <= hour, `it is shown to end in ${until} ms`)
    const ago = Date.now() + ms - Date.parse((await ops('sessions')).sessions[0].startedAt)
    t.ok(ago > -1000 && ago < hour, `the session is shown to be ${ago} ms old`)
  }
})
