/** `identity` of `gateway.yaml`: the headers that tell upstreams who is signed in. */
import * as s from './primitives.ts'

export const identity = s.section(
  {
    id: s.header('The header with the user’s id.', { default: 'x-user-id' }),
    username: s.header('The header with the user name.', { default: 'x-user-name' }),
    roles: s.header('The header with the roles, separated by commas.', { default: 'x-user-roles' }),
    source: s.may.header(
      'The header with the name of the credential source. Default: not sent. For sources that ' +
        'may use the same id for different people.'
    ),
    prefix: s.flag('Put the name of the credential source before the id, such as `users-file/1`.')
  },
  'Headers that tell upstreams who is signed in. The gateway drops these headers from ' +
    'clients, in any spelling. Values outside ASCII are percent-encoded.'
)
