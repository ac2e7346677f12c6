/** Each stage that decides by name, and all of them in one look-up. */
import t from 'tap'
import {
  compilePassing,
  kindOf,
  listedStage,
  type PassingOptions,
  type PassingStage,
  passingStages,
  shapedStage,
  tellingStage,
  tokenStage,
  trustedStage,
  typeStage
} from '../../src/proxy/passing-headers.ts'
import { tokenNamesOf } from '../../src/proxy/token-names.ts'

const tokensOf = (tokenHeaders: string[]) =>
  tokenNamesOf({ tokenHeaders, tokenCookies: [], tokenQuery: [] })
const options: PassingOptions = {
  identity: { id: 'x-who', username: 'x-name', roles: 'x-may', prefix: false },
  credential: 'none',
  tokenNames: tokensOf([]),
  shaped: false
}

/** The requests in which a header passes. */
function passesIn(stage: PassingStage, name: string) {
  const kinds = { change: [false, false], read: [false, true], upload: [true, false] } as const
  return Object.entries(kinds)
    .filter(([, [hasBody, isRead]]) => (stage(name) & kindOf(hasBody, isRead)) !== 0)
    .map(([kind]) => kind)
}
const always = ['change', 'read', 'upload']

t.test('each kind of request has a bit of its own', async t => {
  const bits = [true, false].flatMap(hasBody =>
    [true, false].map(isRead => kindOf(hasBody, isRead))
  )
  t.strictSame(bits.toSorted(), [1, 2, 4, 8])
})

t.test('trusted, connection-bound and built headers do not pass, unless reopened', async t => {
  const stage = trustedStage(['x-role'])
  for (const name of ['x-user-id', 'te', 'host', 'cookie', 'x_tenant', 'x-forwarded-for']) {
    t.strictSame(passesIn(stage, name), [], name)
  }
  for (const name of ['accept', 'x-tenant', 'x-role', 'constructor']) {
    t.strictSame(passesIn(stage, name), always, name)
  }
})

t.test('with a list, only what it or the route names passes', async t => {
  const stage = listedStage(['accept'], ['x-role'])
  t.strictSame(passesIn(stage, 'accept'), always)
  t.strictSame(passesIn(stage, 'x-role'), always)
  t.strictSame(passesIn(stage, 'x-tenant'), [])
})

t.test('headers in which the upstream is told user and credential do not pass', async t => {
  const identity = { ...options.identity, source: 'x-from' }
  const stage = tellingStage({ ...options, identity, credential: 'header:x-key' })
  for (const name of ['x-who', 'x-name', 'x-may', 'x-from', 'x-key']) {
    t.strictSame(passesIn(stage, name), [], name)
  }
  t.strictSame(passesIn(stage, 'accept'), always)
  t.strictSame(passesIn(tellingStage(options), 'x-key'), always)
})

t.test('the console’s own token does not pass', async t => {
  const stage = tokenStage(tokensOf(['x-token']))
  t.strictSame(passesIn(stage, 'x-token'), [])
  t.strictSame(passesIn(stage, 'x-other'), always)
})

t.test(
  'parts, codings and conditions of reads do not pass where the response is shaped',
  async t => {
    for (const name of ['accept-encoding', 'range', 'if-range']) {
      t.strictSame(passesIn(shapedStage, name), [], name)
    }
    for (const name of ['if-none-match', 'if-modified-since']) {
      t.strictSame(passesIn(shapedStage, name), ['change', 'upload'], name)
    }
    t.strictSame(passesIn(shapedStage, 'if-match'), always)
  }
)

t.test('a type passes with a body only', async t => {
  t.strictSame(passesIn(typeStage, 'content-type'), ['upload'])
  t.strictSame(passesIn(typeStage, 'accept'), always)
})

t.test('a header passes where all stages let it; each name is decided once', async t => {
  const asked: string[] = []
  const compiled = compilePassing([
    ...passingStages({ ...options, shaped: true, passHeaders: ['if-none-match', 'x-who'] }),
    name => asked.push(name) && 15
  ])
  for (let times = 0; times < 2; times++) {
    t.strictSame(passesIn(compiled, 'if-none-match'), ['change', 'upload'])
    t.strictSame(passesIn(compiled, 'x-who'), [])
    t.strictSame(passesIn(compiled, 'accept'), [])
  }
  t.strictSame(asked, ['if-none-match', 'x-who', 'accept'])
})
