/** The keys that routes and the profile endpoint of `routes.yaml` share. */
import { contractSchema } from './contracts.ts'
import { may, maybe, name } from './primitives.ts'

export const proxied = {
  upstream: name('An upstream of this file.', { names: 'upstream' }),
  rewrite: may.pathTemplate(
    'The path at the upstream: `*` and `:name` are what those of `path` took. Default: the ' +
      'public path.',
    { format: 'x-upstream-path' }
  ),
  timeout: may.duration(
    'How long the response may be silent. Default: `responseTimeout` of the upstream.'
  ),
  shape: may.name('A shape of this file. Default: the response passes unchanged.', {
    names: 'shape'
  }),
  contract: maybe(contractSchema)
}
