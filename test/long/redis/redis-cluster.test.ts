import t from 'tap'
import { redisCli } from '../../support/redis-cli.ts'
import { testRedis } from '../../support/redis.ts'
import { profile, starting } from '../../support/trial.ts'
import { until } from '../../support/until.ts'

t.test('a gateway that starts while a Cluster is being set up waits for all slots', async t => {
  const { port } = await testRedis(t.after, [
    '--cluster-enabled',
    'yes',
    '--cluster-announce-ip',
    '127.0.0.1'
  ])
  await redisCli(port, 'CLUSTER', 'ADDSLOTSRANGE', '100', '16383')
  const gateway = await starting(t, { cluster: [`127.0.0.1:${port}`] })
  const attempts = async () =>
    Number(/cmdstat_cluster\|slots:calls=(\d+)/.exec(await redisCli(port, 'INFO', 'all'))?.[1] ?? 0)
  await until('it has asked for the slots twice', async () => (await attempts()) >= 2)
  t.equal((await gateway.ops('/readyz')).status, 503)
  t.equal((await gateway.ops('/healthz')).status, 200)
  await redisCli(port, 'CLUSTER', 'ADDSLOTSRANGE', '0', '99')
  await until('ready', async () => (await gateway.ops('/readyz')).status === 200)
  t.equal((await gateway.call(profile, { cookie: await gateway.signIn() })).status, 200)
})
