/** What a start says of unsafe installations and of certificates. The rest: deployment.yaml. */
import t from 'tap'
import { stringify } from 'yaml'
import { testAuthority } from '../../support/authority.ts'
import { stopClock } from '../../support/clock.ts'
import { run } from '../../support/command.ts'
import { faultsOf, textFolder } from '../../support/config-files.ts'
import { configFolder, testGateway } from '../../support/gateway.ts'

const day = 86_400_000

t.test('the start says so too, and one line tells of sign-ins over http', async t => {
  const folder = await configFolder({ gateway: { session: { cookie: { secure: true } } } })
  const gateway = await testGateway(t.after, folder)
  const warnings = gateway.log.filter(({ level }) => level === 'warn')
  t.match(JSON.stringify(warnings), 'no proxy ends TLS')
  const insecure = () => gateway.log.filter(({ event }) => event === 'login.insecure')
  t.same(insecure(), [])
  await gateway.signIn()
  await gateway.reload('operator')
  await gateway.signIn('bob')
  t.equal(insecure().length, 1)
  t.match(insecure()[0], {
    level: 'warn',
    msg: /name the proxy that ends TLS in server\.trustedProxies/
  })
  t.match((await run(['check', '--config', folder])).out, /no proxy ends TLS/)
})

t.test('a sign-in that a trusted proxy had by https needs no line', async t => {
  const gateway = await testGateway(t.after, {
    gateway: { server: { trustedProxies: ['127.0.0.1'] }, session: { cookie: { secure: true } } }
  })
  const { status } = await gateway.call('/api/auth/admin/login', {
    json: { username: 'alice', password: 'correct horse battery' },
    headers: { 'x-forwarded-proto': 'https' }
  })
  t.equal(status, 200)
  t.notOk(gateway.log.some(({ event }) => event === 'login.insecure'))
})

t.test('a certificate that browsers refuse is a warning', async t => {
  const { certificate, key } = testAuthority(t.after)
  const server = { hosts: ['localhost'], tls: { certificate, key: `file:${key}` } }
  const folder = textFolder(t.after, { 'gateway.yaml': stringify({ server }) })
  const pass = stopClock(t.after)
  const said = () =>
    faultsOf(folder)
      .filter(report => report.includes(' server.tls'))
      .join()
  t.equal(said(), '')
  pass(3 * day)
  t.match(said(), /certificate: warning: expired on .* GMT: browsers/)
  pass(-10 * day)
  t.match(said(), /certificate: warning: is not valid before .* GMT/)
})
