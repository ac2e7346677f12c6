/** `identity` of `gateway.yaml`: the headers that tell upstreams who is signed in. */
import * as s from './primitives.ts'

export const identity = s.section(
  {
    id: s.header('The header with the user’s id.', { default: 'x-user-id' }),
    username: s.header('The header with the user name.', { default: 'x-user-name' }),
    roles: s.header('The header with the roles, separated by commas.', { default: 'x-user-roles' }),
    source: s.may.header(
      'The header with the name of the credential source, for sources that may use one id ' +
        'for different people. Default: none.'
    ),
    prefix: s.flag('Put the name of the credential source before the id: `users-file/1`.')
  },
  'Headers that tell upstreams who is signed in, and that no client can send, in any ' +
    'spelling. Values outside ASCII are percent-encoded.'
)
