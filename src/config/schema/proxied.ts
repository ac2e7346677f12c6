/** The keys that routes and the profile endpoint of `routes.yaml` share. */
import { contractSchema } from './contracts.ts'
import { duration, maybe, name, pathTemplate } from './primitives.ts'

export const proxied = {
  upstream: name('An upstream of this file.', { names: 'upstream' }),
  rewrite: maybe(
    pathTemplate(
      'The path at the upstream: `*` and `:name` are what those of `path` took. Default: the ' +
        'public path.',
      { format: 'x-upstream-path', examples: ['/internal/notices', '/users/:id/password'] }
    )
  ),
  timeout: maybe(
    duration('How long the response may be silent. Default: `responseTimeout` of the upstream.', {
      examples: ['30s']
    })
  ),
  shape: maybe(
    name('A shape of this file. Default: the response passes unchanged.', { names: 'shape' })
  ),
  contract: maybe(contractSchema)
}
