/** The keys that routes and the profile endpoint of `routes.yaml` share. */
import { contractSchema } from './contracts.ts'
import { duration, maybe, name, pathTemplate } from './primitives.ts'

export const proxied = {
  upstream: name('An upstream of this file.', { names: 'upstream' }),
  rewrite: maybe(
    pathTemplate(
      'The path at the upstream. `/*` at its end and `:name` are what they matched in `path`, as ' +
        'the client wrote it. Default: the public path.',
      { format: 'x-upstream-path', examples: ['/internal/notices', '/users/:id/password'] }
    )
  ),
  timeout: maybe(
    duration(
      'How long the first byte of the response may take. Default: the upstream’s ' +
        '`responseTimeout`.',
      { examples: ['30s'] }
    )
  ),
  idleTimeout: maybe(
    duration('How long the body of a response may make no progress. Default: the upstream’s.', {
      examples: ['2m']
    })
  ),
  streamIdle: maybe(
    duration('The same for an event stream. Default: the upstream’s.', { examples: ['1h'] })
  ),
  totalTimeout: maybe(
    duration('How long a response may take as a whole. Default: the upstream’s.', {
      examples: ['2m']
    })
  ),
  shape: maybe(
    name('A shape of this file. Default: the response passes unchanged.', { names: 'shape' })
  ),
  contract: maybe(contractSchema)
}
