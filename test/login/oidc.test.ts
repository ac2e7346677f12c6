import t from 'tap'
import { testGateway } from '../support/gateway.ts'
import { testProvider } from '../support/oidc-provider.ts'

t.test('the gateway starts while its provider is away', async t => {
  const provider = await testProvider(t.after)
  provider.fault = 'broken'
  const sources = { sso: provider.config() }
  const gateway = await testGateway(
    t.after,
    { gateway: { login: { sources } } },
    provider.environment
  )
  t.equal((await gateway.call('/api/session')).status, 401)
})
