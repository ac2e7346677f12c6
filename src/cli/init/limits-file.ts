/** `limits.yaml` of a new config: bounds that fit a small installation. */
import type { Findings } from './model.ts'

/** Above this many routes, pages send more requests. */
const manyRoutes = 20

export function limitsFile({ routes }: Findings): string {
  const perUser = routes.length > manyRoutes ? 1200 : 600
  return `# yaml-language-server: $schema=schema/limits.schema.json
# Rate limits, lockout and sizes. All keys: docs/configuration.md
# \`console-gateway limits\` prints how close callers come to each of them.

sizes:
  body: 1MiB
  login: 4KiB
  url: 8KiB
  shape: 2MiB

# Wrong passwords that may follow each other at once, and the time after which one more may.
lockout:
  accountAndAddress: { failures: 5, every: 5m }
  address: { failures: 20, every: 1m }
  account: { failures: 50, every: 15m }

limits:
  signed-in: { by: user, max: ${perUser}, window: 1m }
  anonymous: { by: address, max: 120, window: 1m }
`
}
