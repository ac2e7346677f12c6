/** The keys that whatever is proxied has in `routes.yaml`: routes and the profile endpoint. */
import { Type } from 'typebox'
import { contractSchema } from './contracts.ts'
import { duration, name, path } from './primitives.ts'

export const proxied = {
  upstream: name({ description: 'An upstream of this file.' }),
  rewrite: Type.Optional(
    path({
      description:
        'The path at the upstream; with `/*` at its end it keeps what the `*` of `path` stands for. Without it the public path is kept.',
      examples: ['/internal/notices']
    })
  ),
  timeout: Type.Optional(
    duration({
      description:
        'How long the first byte of the answer may take; the upstream’s `responseTimeout` without it.'
    })
  ),
  shape: Type.Optional(
    name({ description: 'A shape of this file. Without it the answer passes as it is.' })
  ),
  contract: Type.Optional(contractSchema)
}
