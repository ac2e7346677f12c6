/** Paths at an upstream, and back. What clients meet of it: http/paths.test.ts. */
import fc from 'fast-check'
import t from 'tap'
import { GatewayError } from '../../src/errors/errors.ts'
import { checkTarget, createRewrite } from '../../src/proxy/path.ts'
import { seed } from '../support/seed.ts'

interface Rewrite {
  readonly of: readonly [paths: string[], rewrite: string, base?: string]
  /** What is asked for, and what the upstream is asked for; undefined where that is refused. */
  readonly up: Readonly<Record<string, string | undefined>>
  /** A place that the upstream names, and its public path; undefined where none leads there. */
  readonly down?: Readonly<Record<string, string | undefined>>
}

const nearer = { '/api/v1/x': '/up/x', '/api/x': '/up/x' }

const rewrites: Record<string, Rewrite> = {
  'one path, behind the upstream’s base, without the query': {
    of: [['/api/notices', '/api/v2/notices'], '/internal/list', '/base'],
    up: {
      '/api/notices': '/base/internal/list',
      '/api/notices?page=1&x=/../y': '/base/internal/list',
      '/api/notices?': '/base/internal/list',
      '/api/v2/notices': '/base/internal/list',
      // Other spellings are other paths.
      '/api/notices/': undefined,
      '/API/notices': undefined,
      '/api/notices/x': undefined,
      '': undefined
    },
    down: {
      '/base/internal/list': '/api/notices',
      '/base/internal/list/': undefined,
      '/base/internal/lis': undefined,
      '/internal/list': undefined
    }
  },
  'a star keeps what stands for it': {
    of: [['/api/orders/*', '/api/alias/*'], '/v1/orders/*', '/base'],
    up: {
      '/api/orders/42/lines?x=1': '/base/v1/orders/42/lines',
      '/api/orders/': '/base/v1/orders/',
      '/api/orders/%E4%BD%A0/a%20b': '/base/v1/orders/%E4%BD%A0/a%20b',
      '/api/orders': undefined,
      '/api/ordersX/1': undefined
    },
    down: {
      '/base/v1/orders/42': '/api/orders/42',
      '/base/v1/orders/': '/api/orders/',
      '/base/v1/order/42': undefined,
      '/v1/orders/42': undefined,
      '/base/v1/orders': undefined,
      '': undefined
    }
  },
  'a star may stand for all': { of: [['/*'], '/*'], up: { '/x/y': '/x/y' } },
  'of an alias and a path the nearer one counts': {
    of: [['/api/*', '/api/v1/*'], '/up/*'],
    up: nearer
  },
  'in whatever order they stand': { of: [['/api/v1/*', '/api/*'], '/up/*'], up: nearer },
  'no place becomes one that browsers take for another host': {
    of: [['/*'], '/base/*'],
    up: {},
    down: {
      '/base/x': '/x',
      '/base//evil.example': undefined,
      '/base//evil.example/x': undefined,
      '/base///evil.example': undefined
    }
  },
  'a :name stands at the upstream as the client wrote it': {
    of: [['/api/users/:id/orders/:order', '/api/orders/:order/of/:id'], '/v1/:order/by/:id', '/b'],
    up: {
      '/api/users/7/orders/a%20b?x=/y': '/b/v1/a%20b/by/7',
      '/api/orders/$&/of/:id': '/b/v1/$&/by/:id',
      '/api/users/7': undefined
    },
    down: {
      '/b/v1/9/by/8': '/api/users/8/orders/9',
      '/v1/9/by/8': undefined,
      '/b/v1/9/by/': undefined
    }
  },
  'a :name and a * keep what they took': {
    of: [['/api/:tenant/files/*'], '/t/:tenant/*'],
    up: { '/api/acme/files/a/b.txt': '/t/acme/a/b.txt', '/api/acme/files/': '/t/acme/' },
    down: { '/t/acme/x': '/api/acme/files/x' }
  },
  'there is no public path where the upstream’s lacks a :name of it': {
    of: [['/api/users/:id'], '/me'],
    up: { '/api/users/7': '/me' },
    down: { '/me': undefined }
  }
}

for (const [title, { of, up, down = {} }] of Object.entries(rewrites)) {
  t.test(title, async t => {
    const [paths, rewrite, base = ''] = of
    const { toUpstream, toPublic } = createRewrite(paths, rewrite, base)
    for (const [target, expected] of Object.entries(up)) {
      if (expected !== undefined) t.equal(toUpstream(target), expected, target)
      else t.throws(() => toUpstream(target), { code: 'request.path' }, target)
    }
    for (const [place, expected] of Object.entries(down)) t.equal(toPublic(place), expected, place)
  })
}

const verdict = (target: string) => {
  try {
    checkTarget(target)
    return 'accepted'
  } catch (error) {
    const { code, status } = error as GatewayError
    return `${code} ${status}`
  }
}

/**
 * What a lenient back-end may make of a path: decoded, backslashes as slashes, parameters of
 * segments dropped, dots resolved.
 */
function resolved(path: string): string {
  const kept: string[] = []
  const segments = path.replaceAll('\\', '/').split('/')
  for (const segment of segments.map(part => part.replace(/;.*$/, ''))) {
    if (segment === '..') kept.pop()
    else if (segment !== '.' && segment !== '') kept.push(segment)
  }
  return `/${kept.join('/')}`
}

const decoded = (path: string) =>
  path.replace(/(?:%[0-9a-f]{2})+/gi, escapes =>
    // Overlong forms, as careless decoders read them.
    Buffer.from(escapes.replaceAll('%', ''), 'hex')
      .toString('latin1')
      .replace(/[\xc0\xc1]([\x80-\xbf])/g, (pair, last: string) =>
        String.fromCharCode(((pair.charCodeAt(0) & 1) << 6) | (last.charCodeAt(0) & 0x3f))
      )
  )

const bits = [
  ...'. .. / // /../ /..;/ ..%2f \\ ; ? # a secret \uff0e'.split(' '),
  ...'%2e %2E %2f %2F %5c %5C %25 %252e %252f %255c %00 %3b %3B %253b'.split(' '),
  ...'%c0%ae %c0%af %25c0%25ae %20 %09 % 2e 2f 25 5c c0 ae'.split(' '),
  ...'%u002e %ef%bc%8e %61 %E4%BD%A0'.split(' ')
]

t.test('what is accepted stays under the upstream’s prefix, also if decoded twice', async t => {
  const parts = fc.array(fc.constantFrom(...bits), { minLength: 1, maxLength: 8 })
  let crossed = 0
  const property = fc.property(parts, fc.constantFrom('', '/base'), (chosen, base) => {
    const target = `/api/orders/${chosen.join('')}`
    if (verdict(target) !== 'accepted') return
    crossed++
    const once = createRewrite(['/api/orders/*'], '/v1/orders/*', base).toUpstream(target)
    for (const path of [once, decoded(once), decoded(decoded(once))]) {
      const reached = resolved(path.split('?', 1)[0] ?? '')
      if (!`${reached}/`.startsWith(`${base}/v1/orders/`)) {
        throw new Error(`${target} reaches ${reached} by ${path}`)
      }
    }
  })
  fc.assert(property, { numRuns: 30_000, seed })
  t.ok(crossed > 500, `${crossed} targets crossed: the property is not empty`)
})

t.test('any text at all is accepted or refused, and never anything else', async () => {
  const verdicts = new Set(['accepted', 'request.path 400'])
  const property = fc.property(
    fc.string({ unit: 'binary', maxLength: 60 }),
    text => verdicts.has(verdict(text)) && verdicts.has(verdict(`/${text}`))
  )
  fc.assert(property, { numRuns: 3000, seed })
})
