/** The examples of docs/proxies.md that need no proxy; test/long/proxies.test.ts runs the others. */
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { parse } from 'yaml'
import { loadConfig } from '../../src/config/read/load.ts'
import { testAuthority } from '../support/authority.ts'
import { blocksOf } from '../support/doc-blocks.ts'
import { configFolder } from '../support/gateway.ts'

const blocks = blocksOf('docs/proxies.md')
const { certificate, key } = testAuthority(t.after, 'DNS:console.example.com')

function blockOf(language: string, part: string): string {
  const block = blocks.find(each => each.language === language && each.text.includes(part))
  if (block === undefined) throw new Error(`proxies.md has no ${language} block with "${part}"`)
  return block.text
}

t.test('the gateway.yaml for https of its own has no fault', async t => {
  const folder = await configFolder({
    gateway: { ...(parse(blockOf('yaml', 'redirect: 0.0.0.0:80')) as object) }
  })
  const file = join(folder, 'gateway.yaml')
  const [ownKey, ownCertificate] = [join(folder, 'key'), join(folder, 'certificate')]
  copyFileSync(key, ownKey)
  copyFileSync(certificate, ownCertificate)
  const written = readFileSync(file, 'utf8')
    .replace('/etc/ssl/console.example.com.key', ownKey)
    .replace('/etc/ssl/console.example.com.pem', ownCertificate)
  writeFileSync(file, written)
  const about = loadConfig(folder, {}).warnings.filter(({ path }) => path.includes('tls'))
  t.same(about, [])
})

t.test('the files for Traefik, which no test runs, are YAML that refers to each other', async t => {
  const fixed = parse(blockOf('yaml', 'entryPoints:\n  web'))
  const dynamic = parse(blockOf('yaml', 'routers'))
  const [router] = Object.values<any>(dynamic.http.routers)
  t.match(router.entryPoints, Object.keys(fixed.entryPoints).slice(1))
  const service = dynamic.http.services[router.service].loadBalancer
  t.ok(dynamic.http.serversTransports[service.serversTransport])
})
