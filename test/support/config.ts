/** Parts of config, for tests below the whole gateway. Time-outs are long: a busy machine is no fault. */
import type { RedisConfig } from '../../src/config/schema/gateway.ts'

export const redisConfig = (given: Partial<RedisConfig>): RedisConfig => ({
  url: '',
  sentinels: [],
  primary: 'mymaster',
  cluster: [],
  tls: false,
  prefix: 'test:',
  commandTimeout: 20_000,
  ...given
})
