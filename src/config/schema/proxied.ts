/** The keys that routes and the profile endpoint of `routes.yaml` share. */
import { Type } from 'typebox'
import { contractSchema } from './contracts.ts'
import { duration, name, pathTemplate } from './primitives.ts'

export const proxied = {
  upstream: name({ names: 'upstream', description: 'An upstream of this file.' }),
  rewrite: Type.Optional(
    pathTemplate({
      format: 'x-upstream-path',
      description:
        'The path at the upstream. With `/*` at its end it keeps what the `*` of `path` ' +
        'matched; `:name` is the segment that `:name` of `path` matched, as the client wrote ' +
        'it. Default: the public path.',
      examples: ['/internal/notices', '/users/:id/password']
    })
  ),
  timeout: Type.Optional(
    duration({
      description:
        'How long the first byte of the response may take. Default: the upstream’s ' +
        '`responseTimeout`.',
      examples: ['30s']
    })
  ),
  idleTimeout: Type.Optional(
    duration({
      description: 'How long the body of a response may make no progress. Default: the upstream’s.',
      examples: ['2m']
    })
  ),
  streamIdle: Type.Optional(
    duration({
      description: 'The same for an event stream. Default: the upstream’s.',
      examples: ['1h']
    })
  ),
  totalTimeout: Type.Optional(
    duration({
      description: 'How long a response may take as a whole. Default: the upstream’s.',
      examples: ['2m']
    })
  ),
  shape: Type.Optional(
    name({
      names: 'shape',
      description: 'A shape of this file. Default: the response passes unchanged.'
    })
  ),
  contract: Type.Optional(contractSchema)
}
