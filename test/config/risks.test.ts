import t from 'tap'
import { stringify } from 'yaml'
import { loadConfig } from '../../src/config/read/load.ts'
import { risksOf } from '../../src/config/risks.ts'
import { textFolder } from '../support/config-files.ts'

const login = { by: 'address', max: 10, window: '1m', routes: ['login'] }
const user = { by: 'user', max: 600, window: '1m' }

function risks(cleanUp: (undo: () => unknown) => void, before: object, after: object): string[] {
  const load = (limit: object) =>
    loadConfig(
      textFolder(cleanUp, {
        'gateway.yaml': 'server: { hosts: [h] }',
        'limits.yaml': stringify({ limits: { l: limit } })
      }),
      {}
    )
  return risksOf(load(before), load(after))
}

t.test('a limit that refuses nobody any more, or not all that it refused, is a risk', async t => {
  const cases: Array<[old: object, now: object, risk: string]> = [
    [login, { ...login, mode: 'off' }, 'no longer refuses anyone'],
    [login, { ...login, mode: 'shadow' }, 'no longer refuses anyone'],
    [
      user,
      { ...user, routes: ['profile'] },
      'no longer applies to all requests that it applied to'
    ],
    [user, { ...user, methods: ['GET'] }, 'no longer applies to all requests that it applied to'],
    [user, { ...user, roles: ['viewer'] }, 'no longer applies to all requests that it applied to'],
    [
      { ...user, roles: ['viewer', 'editor'] },
      { ...user, roles: ['viewer', 'admin'] },
      'no longer applies to all requests that it applied to'
    ],
    [user, { ...user, by: ['session', 'user'] }, 'counts by session and user, it was by user']
  ]
  for (const [old, now, risk] of cases) {
    t.same(risks(t.after, old, now), [`limits.l ${risk}`], JSON.stringify(now))
    t.same(risks(t.after, now, now), [], 'as it is')
  }
})

t.test('a limit that refuses or counts more than before is none', async t => {
  const cases: Array<[old: object, now: object]> = [
    [{ ...login, mode: 'shadow' }, login],
    [{ ...user, methods: ['GET'] }, user],
    [
      { ...user, roles: ['viewer'] },
      { ...user, roles: ['admin', 'viewer'] }
    ],
    [
      { ...user, by: ['user', 'address'] },
      { ...user, by: ['address', 'user'] }
    ],
    // It refused nobody before either.
    [
      { ...user, mode: 'shadow' },
      { ...user, mode: 'off', methods: ['GET'] }
    ]
  ]
  for (const [old, now] of cases) t.same(risks(t.after, old, now), [], JSON.stringify(now))
})

t.test('a limit that is much looser is a risk, as a rate or at once', async t => {
  const hourly = { ...user, max: 36_000, window: '1h' }
  const bucket = { ...user, burst: 20 }
  const cases: Array<[old: object, now: object, risk: string]> = [
    [user, { ...user, max: 6000 }, 'is 10 times looser'],
    [user, hourly, 'lets 60 times more requests pass at once'],
    [bucket, user, 'lets 30 times more requests pass at once']
  ]
  for (const [old, now, risk] of cases) t.same(risks(t.after, old, now), [`limits.l ${risk}`])
  t.same(risks(t.after, bucket, { ...bucket, burst: 199 }), [])
})
