/** Which origins may change something, by each of the fields that a browser tells it with. */
import t from 'tap'
import { sameOrigin } from '../../../src/app/hooks/same-origin.ts'

const allowed = 'https://console.example.com'

/** Whether a POST with these fields passes, at a gateway that was called by `protocol`. */
function mayPost(headers: Record<string, string>, protocol: 'http' | 'https' = 'http'): boolean {
  let refused: Error | undefined
  const request = { method: 'POST', protocol, headers: { host: 'gateway.example.com', ...headers } }
  sameOrigin([allowed])(request as never, undefined, error => {
    refused = error
  })
  return refused === undefined
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
