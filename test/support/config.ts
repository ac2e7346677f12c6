/** Parts of config with their defaults, for tests below the whole gateway. */
import type { RedisConfig } from '../../src/config/gateway.ts'

export const redisConfig = (given: Partial<RedisConfig>): RedisConfig => ({ url: '', sentinels: [], primary: 'mymaster', cluster: [], tls: false, prefix: 'test:', connectTimeout: 1000, commandTimeout: 300, ...given })
