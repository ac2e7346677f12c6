/** `identity` of `gateway.yaml`: the header fields that tell upstreams who asks. */
import { Type } from 'typebox'
import { flag, header, section } from './primitives.ts'

export const identity = section(
  {
    id: header({
      default: 'x-user-id',
      description: 'The header that tells an upstream the user’s id.'
    }),
    username: header({ default: 'x-user-name', description: 'The user name.' }),
    roles: header({ default: 'x-user-roles', description: 'The roles, joined by commas.' }),
    source: Type.Optional(
      header({
        description:
          'The header that tells an upstream which credential source vouched, by its name.',
        examples: ['x-user-source']
      })
    ),
    prefix: flag({
      default: false,
      description: 'Whether the name of the credential source stands before the id: `users-file/1`.'
    })
  },
  'Header fields that tell upstreams who asks. What a client sends under these names, in any spelling, is dropped. Values are percent-encoded where they are not plain ASCII.'
)
