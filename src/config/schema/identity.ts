/** `identity` of `gateway.yaml`: the headers that tell upstreams who is signed in. */
import { Type } from 'typebox'
import { flag, header, section } from './primitives.ts'

export const identity = section(
  {
    id: header({
      default: 'x-user-id',
      description: 'The header with the user’s id.'
    }),
    username: header({ default: 'x-user-name', description: 'The header with the user name.' }),
    roles: header({
      default: 'x-user-roles',
      description: 'The header with the roles, separated by commas.'
    }),
    source: Type.Optional(
      header({
        description:
          'The header with the name of the credential source that signed the user in. Default: ' +
          'not sent. Set it if two sources may use the same id for different people.',
        examples: ['x-user-source']
      })
    ),
    prefix: flag({
      default: false,
      description: 'Put the name of the credential source before the id, such as `users-file/1`.'
    })
  },
  'Headers that tell upstreams who is signed in. The gateway drops these headers from ' +
    'clients, in any spelling. Values outside ASCII are percent-encoded.'
)
