import { readFileSync } from 'node:fs'
import t from 'tap'
import { stringify } from 'yaml'
import { testAuthority } from '../../support/authority.ts'
import { faultsOf, textFolder } from '../../support/config-files.ts'

const own = testAuthority(t.after)
const certificate = readFileSync(own.certificate, 'utf8')
const environment = { S: 's'.repeat(32) }

/** Of each place of a file of authorities, with line and key. */
function faultsWith(pem: string): string[] {
  const folder = textFolder(t.after, {
    'ca.pem': pem,
    'gateway.yaml': 'session: { secrets: ["${S}"] }\nredis:\n  url: rediss://h:1\n  ca: ca.pem\n',
    'routes.yaml': stringify({
      upstreams: {
        a: { url: 'https://a', ca: 'ca.pem' },
        b: { url: 'https://b', tls: { ca: 'ca.pem' } }
      },
      routes: {
        a: { path: '/api/a', upstream: 'a', rewrite: '/x' },
        b: { path: '/api/b', upstream: 'b', rewrite: '/x' }
      }
    })
  })
  return faultsOf(folder, environment).filter(fault => !fault.includes('warning'))
}

t.test('a file of authorities holds a certificate', async t => {
  const message = 'the file does not begin with a certificate: expected PEM'
  const expected = [
    `gateway.yaml:4 redis.ca: ${message}`,
    `routes.yaml:4 upstreams.a.ca: ${message}`,
    `routes.yaml:8 upstreams.b.tls.ca: ${message}`
  ]
  const bad = {
    'another text': 'a certificate',
    'nothing': '',
    'a key': readFileSync(own.key, 'utf8'),
    'a broken one': '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n'
  }
  for (const [title, pem] of Object.entries(bad)) t.same(faultsWith(pem), expected, title)
  const good = {
    'one': certificate,
    'several': certificate.repeat(2),
    'text before it': `Our authority\n\n${certificate}`,
    'lines of Windows': certificate.replaceAll('\n', '\r\n')
  }
  for (const [title, pem] of Object.entries(good)) t.same(faultsWith(pem), [], title)
})
