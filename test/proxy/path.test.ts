import fc from 'fast-check'
import t from 'tap'
import { GatewayError } from '../../src/errors/errors.ts'
import { checkTarget, createRewrite } from '../../src/proxy/path.ts'
import { seed } from '../support/seed.ts'

const verdict = (target: string) => {
  try {
    checkTarget(target)
    return 'accepted'
  } catch (error) {
    return error instanceof GatewayError
      ? `${error.code} ${error.status}`
      : `threw ${String(error)}`
  }
}

t.test(
  'one public path becomes one upstream path, behind the upstream’s base, without the query',
  async t => {
    const { toUpstream } = createRewrite(
      ['/api/notices', '/api/v2/notices'],
      '/internal/list',
      '/base'
    )
    t.equal(toUpstream('/api/notices'), '/base/internal/list')
    t.equal(toUpstream('/api/notices?page=1&x=/../y'), '/base/internal/list')
    t.equal(toUpstream('/api/notices?'), '/base/internal/list')
    t.equal(toUpstream('/api/v2/notices'), '/base/internal/list')
  }
)

t.test('a star keeps what stands for it', async t => {
  const { toUpstream } = createRewrite(['/api/orders/*'], '/v1/orders/*', '')
  t.equal(toUpstream('/api/orders/42/lines?x=1'), '/v1/orders/42/lines')
  t.equal(toUpstream('/api/orders/'), '/v1/orders/')
  t.equal(toUpstream('/api/orders/%E4%BD%A0/a%20b'), '/v1/orders/%E4%BD%A0/a%20b')
  t.equal(createRewrite(['/api/*'], '/*', '/base').toUpstream('/api/x/y'), '/base/x/y')
  t.equal(createRewrite(['/*'], '/*', '').toUpstream('/x/y'), '/x/y')
})

t.test(
  'of an alias and a path that both fit, the nearer one counts, as it does for the router',
  async t => {
    for (const paths of [
      ['/api/*', '/api/v1/*'],
      ['/api/v1/*', '/api/*']
    ]) {
      const { toUpstream } = createRewrite(paths, '/up/*', '')
      t.equal(toUpstream('/api/v1/x'), '/up/x', paths.join())
      t.equal(toUpstream('/api/x'), '/up/x', paths.join())
    }
  }
)

t.test('another spelling of the public path is never rewritten', async t => {
  const one = createRewrite(['/api/notices'], '/internal/notices', '/base')
  for (const target of [
    '/api/notices/',
    '/API/notices',
    '/api/notices/x',
    '/api/notice%73',
    '/api/notices;x',
    '/api/x/../notices',
    '//api/notices',
    '',
    '?/api/notices'
  ]) {
    t.throws(() => one.toUpstream(target), { code: 'request.path' }, target)
  }
  const many = createRewrite(['/api/orders/*'], '/orders/*', '')
  for (const target of [
    '/api/orders',
    '/api/Orders/1',
    '/api/ordersX/1',
    '/%61pi/orders/1',
    '/x/api/orders/1'
  ]) {
    t.throws(() => many.toUpstream(target), { code: 'request.path' }, target)
  }
})

t.test(
  'an upstream path is told as the public one, and none where no public path leads',
  async t => {
    const many = createRewrite(['/api/orders/*', '/api/alias/*'], '/v1/orders/*', '/base')
    t.equal(many.toPublic('/base/v1/orders/42'), '/api/orders/42')
    t.equal(many.toPublic('/base/v1/orders/'), '/api/orders/')
    for (const path of [
      '/base/v1/order/42',
      '/v1/orders/42',
      '/base/v1/orders',
      '/',
      '',
      '/base/admin'
    ]) {
      t.equal(many.toPublic(path), undefined, path)
    }
    const one = createRewrite(['/api/notices'], '/list', '')
    t.equal(one.toPublic('/list'), '/api/notices')
    for (const path of ['/list/', '/list/1', '/lis', '/List']) {
      t.equal(one.toPublic(path), undefined, path)
    }
  }
)

t.test('no upstream path becomes one that browsers take for another host', async t => {
  const { toPublic } = createRewrite(['/*'], '/base/*', '')
  t.equal(toPublic('/base/x'), '/x')
  for (const path of ['/base//evil.example', '/base//evil.example/x', '/base///evil.example']) {
    t.equal(toPublic(path), undefined, path)
  }
  t.equal(createRewrite(['/*'], '/*', '').toPublic('//evil.example'), undefined)
})

/**
 * What a lenient back-end may make of a path: decoded, backslashes as slashes, parameters of
 * segments dropped, dots resolved.
 */
function resolved(path: string): string {
  const kept: string[] = []
  for (const segment of path
    .replaceAll('\\', '/')
    .split('/')
    .map(part => part.replace(/;.*$/, ''))) {
    if (segment === '..') kept.pop()
    else if (segment !== '.' && segment !== '') kept.push(segment)
  }
  return `/${kept.join('/')}`
}

const decoded = (path: string) =>
  path.replace(/(?:%[0-9a-f]{2})+/gi, escapes => {
    const bytes = Buffer.from(escapes.replaceAll('%', ''), 'hex')
    // Overlong forms, as careless decoders read them.
    return bytes
      .toString('latin1')
      .replace(/[\xc0\xc1]([\x80-\xbf])/g, (pair, last: string) =>
        String.fromCharCode(((pair.charCodeAt(0) & 1) << 6) | (last.charCodeAt(0) & 0x3f))
      )
  })

t.test(
  'whatever is accepted stays under the upstream’s prefix, also for a back-end that decodes twice',
  async t => {
    const bit = fc.constantFrom(
      '.',
      '..',
      '/',
      '%2e',
      '%2E',
      '%2f',
      '%2F',
      '%5c',
      '%5C',
      '\\',
      '%25',
      '%252e',
      '%252f',
      '%255c',
      '%00',
      ';',
      '%3b',
      '%3B',
      '%253b',
      'a',
      'secret',
      '%c0%ae',
      '%c0%af',
      '%25c0%25ae',
      '%20',
      '%09',
      '?',
      '#',
      '//',
      '/../',
      '/..;/',
      '%',
      '2e',
      '2f',
      '25',
      '5c',
      'c0',
      'ae',
      '..%2f',
      '%u002e',
      '\uff0e',
      '%ef%bc%8e',
      '%61',
      '%E4%BD%A0'
    )
    let crossed = 0
    fc.assert(
      fc.property(
        fc.array(bit, { minLength: 1, maxLength: 8 }),
        fc.constantFrom('', '/base'),
        (bits, base) => {
          const target = `/api/orders/${bits.join('')}`
          if (verdict(target) !== 'accepted') return
          crossed++
          const { toUpstream } = createRewrite(['/api/orders/*'], '/v1/orders/*', base)
          const once = toUpstream(target)
          for (const path of [once, decoded(once), decoded(decoded(once))]) {
            const reached = resolved(path.split('?', 1)[0] ?? '')
            if (reached !== `${base}/v1/orders` && !reached.startsWith(`${base}/v1/orders/`)) {
              throw new Error(`${target} reaches ${reached} by ${path}`)
            }
          }
        }
      ),
      { numRuns: 30_000, seed }
    )
    t.ok(crossed > 500, `${crossed} targets crossed: the property is not empty`)
  }
)

t.test('any text at all is accepted or refused, and never anything else', async () => {
  fc.assert(
    fc.property(
      fc.string({ unit: 'binary', maxLength: 60 }),
      text =>
        ['accepted', 'request.path 400'].includes(verdict(text)) &&
        ['accepted', 'request.path 400'].includes(verdict(`/${text}`))
    ),
    { numRuns: 3000, seed }
  )
})

t.test('a :name of the public path stands at the upstream as the client wrote it', async t => {
  const { toUpstream, toPublic } = createRewrite(
    ['/api/users/:id/orders/:order', '/api/orders/:order/of/:id'],
    '/v1/:order/by/:id',
    '/base'
  )
  t.equal(toUpstream('/api/users/7/orders/a%20b?x=/y'), '/base/v1/a%20b/by/7')
  t.equal(toUpstream('/api/orders/$&/of/:id'), '/base/v1/$&/by/:id')
  t.throws(() => toUpstream('/api/users/7'), { code: 'request.path' })
  t.equal(toPublic('/base/v1/9/by/8'), '/api/users/8/orders/9')
  t.equal(toPublic('/v1/9/by/8'), undefined)
  t.equal(toPublic('/base/v1/9/by/'), undefined)
})

t.test('a :name and a * keep what they took', async t => {
  const { toUpstream, toPublic } = createRewrite(['/api/:tenant/files/*'], '/t/:tenant/*', '')
  t.equal(toUpstream('/api/acme/files/a/b.txt'), '/t/acme/a/b.txt')
  t.equal(toUpstream('/api/acme/files/'), '/t/acme/')
  t.equal(toPublic('/t/acme/x'), '/api/acme/files/x')
})

t.test('a redirect has no public path where the upstream path lacks a :name of it', async t => {
  const { toUpstream, toPublic } = createRewrite(['/api/users/:id'], '/me', '')
  t.equal(toUpstream('/api/users/7'), '/me')
  t.equal(toPublic('/me'), undefined)
})
