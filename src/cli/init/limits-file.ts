/** `limits.yaml` of a new config: bounds that fit a small installation. */
import type { Findings } from './model.ts'

/** Above this many routes, pages send more requests. */
const manyRoutes = 20

export function limitsFile({ routes }: Findings): string {
  const perUser = routes.length > manyRoutes ? 1200 : 600
  return `# yaml-language-server: $schema=schema/limits.schema.json
# Rate limits, lockout and sizes. All keys: docs/configuration.md
# After some days of use, \`console-gateway limits suggest\` recommends values.

sizes:
  body: 1MiB
  login: 4KiB
  url: 8KiB
  shape: 2MiB

# Failed sign-ins lock an account, from any address, and an address, for any account. A lock ends
# by itself.
lockout:
  account: { after: 5, within: 10m, delay: 1m, longest: 15m }
  address: { after: 20, within: 10m, delay: 1m, longest: 15m }

limits:
  signed-in: { by: user, max: ${perUser}, window: 1m }
  anonymous: { by: address, max: 120, window: 1m }
`
}
