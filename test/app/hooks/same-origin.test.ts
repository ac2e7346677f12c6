/** Which origins may change something, by each of the fields that a browser tells it with. */
import t from 'tap'
import type { FastifyRequest } from 'fastify'
import { requireOrigin, sameOrigin } from '../../../src/app/hooks/same-origin.ts'

const allowed = 'https://console.example.com'
const hook = sameOrigin([allowed, 'https://other.example.com'])
/** That of endpoints such as sign-out. */
const strict: typeof hook = (request, _reply, done) => {
  try {
    requireOrigin(request as FastifyRequest, [allowed])
    done()
  } catch (error) {
    done(error as Error)
  }
}

interface Called {
  readonly method?: string
  readonly protocol?: 'http' | 'https'
  readonly host?: string
}

/** Whether a request with these fields passes; the hook has to decide, and only once. */
function passes(
  check: typeof hook,
  headers: Record<string, string>,
  { method = 'POST', protocol = 'http', host = 'gateway.example.com' }: Called = {}
): boolean {
  const decisions: Array<Error | undefined> = []
  const request = { method, protocol, headers: { host, ...headers } }
  check(request as never, undefined as never, error => void decisions.push(error))
  if (decisions.length !== 1) throw new Error(`decided ${decisions.length} times`)
  return decisions[0] === undefined
}

/** Whether a POST with these fields passes, at a gateway that was called by `protocol`. */
function mayPost(headers: Record<string, string>, protocol: 'http' | 'https' = 'http'): boolean {
  return passes(hook, headers, { protocol })
}

t.test('a Referer of an allowed origin passes, one that only begins like it does not', async t => {
  t.equal(mayPost({ referer: allowed }), true)
  t.equal(mayPost({ referer: `${allowed}/orders?page=2` }), true)
  t.equal(mayPost({ referer: `${allowed}.evil.example/` }), false)
  t.equal(mayPost({ referer: `${allowed}.evil.example` }), false)
  t.equal(mayPost({ referer: `${allowed}@evil.example/` }), false)
  t.equal(mayPost({ referer: `${allowed}:8443/` }), false)
})

t.test(
  'an http page of our own host may call us by http only: by https, somebody on the way may have written it',
  async t => {
    for (const field of ['origin', 'referer'] as const) {
      t.equal(mayPost({ [field]: 'http://gateway.example.com' }, 'http'), true, field)
      t.equal(mayPost({ [field]: 'http://gateway.example.com' }, 'https'), false, field)
      t.equal(mayPost({ [field]: 'https://gateway.example.com' }, 'https'), true, field)
      t.equal(
        mayPost({ [field]: 'https://gateway.example.com' }, 'http'),
        true,
        `${field}, behind a proxy that speaks https for us`
      )
    }
  }
)

const foreign = 'https://evil.example'
const own = 'https://gateway.example.com'

t.test(
  'Sec-Fetch-Site decides where it names our own origin or none, before all others',
  async t => {
    for (const site of ['same-origin', 'none']) {
      t.equal(
        mayPost({ 'sec-fetch-site': site, 'origin': foreign, 'referer': foreign }),
        true,
        site
      )
    }
    for (const site of ['same-site', 'cross-site', 'unknown', '']) {
      t.equal(mayPost({ 'sec-fetch-site': site }), false, site)
      t.equal(
        mayPost({ 'sec-fetch-site': site, 'referer': own }),
        false,
        `${site}: Referer is less`
      )
      t.equal(mayPost({ 'sec-fetch-site': site, 'origin': foreign }), false, site)
      t.equal(
        mayPost({ 'sec-fetch-site': site, 'origin': allowed }),
        true,
        `${site}, an allowed page`
      )
    }
  }
)

t.test('Origin decides before Referer, by the whole of it', async t => {
  for (const origin of [allowed, 'https://other.example.com', own]) {
    t.equal(mayPost({ origin, referer: foreign }), true, origin)
  }
  for (const origin of [foreign, 'null', '', `${allowed}.evil.example`, `${own}:8443`, 'x://y']) {
    t.equal(mayPost({ origin, referer: own }), false, origin)
  }
})

t.test('without Fetch Metadata and Origin a Referer decides, and none at all passes', async t => {
  t.equal(mayPost({}), true)
  t.equal(mayPost({ referer: `${own}/orders` }), true)
  t.equal(mayPost({ referer: 'https://other.example.com/orders' }), true)
  for (const referer of [`${foreign}/`, 'about:blank', '', 'gateway.example.com']) {
    t.equal(mayPost({ referer }), false, referer)
  }
})

t.test('our own host is compared as browsers write it', async t => {
  const called = { host: 'Gateway.Example.COM:8443' }
  t.equal(passes(hook, { origin: `${own}:8443` }, called), true)
  t.equal(passes(hook, { origin: own }, called), false)
  t.equal(passes(hook, { origin: 'ftp://gateway.example.com:8443' }, called), false)
})

t.test('methods that change nothing pass from anywhere, but where always is said', async t => {
  for (const method of ['GET', 'HEAD', 'OPTIONS']) {
    t.equal(passes(hook, { origin: foreign }, { method }), true, method)
    t.equal(passes(strict, { origin: foreign }, { method }), false, method)
    t.equal(passes(strict, { origin: allowed }, { method }), true, method)
  }
  for (const method of ['POST', 'PUT', 'PATCH', 'DELETE', 'PURGE']) {
    t.equal(passes(hook, { origin: foreign }, { method }), false, method)
  }
})

t.test('a prefetch of our own page signs nobody out', async t => {
  const prefetches = [
    { 'sec-purpose': 'prefetch;prerender' },
    { 'sec-purpose': 'prerender' },
    { purpose: 'Prefetch' },
    { 'x-purpose': 'preview' },
    { 'x-moz': 'prefetch' }
  ]
  for (const fields of prefetches) {
    const headers = { 'sec-fetch-site': 'same-origin', ...fields }
    const called = { method: 'GET' }
    t.equal(passes(strict, headers, called), false, JSON.stringify(fields))
    t.equal(passes(hook, headers, { method: 'POST' }), true, 'which holds for sign-out alone')
  }
  t.equal(passes(strict, { purpose: 'navigate' }, { method: 'GET' }), true)
})
