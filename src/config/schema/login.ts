/** `login` of `gateway.yaml`: the sign-in body and the credential sources. */
import { Type } from 'typebox'
import { sourceNameSchema } from './source-name.ts'
import { upstreamLogin } from './upstream-login.ts'
import { flag, section, text } from './primitives.ts'

const usersFile = Type.Object(
  {
    kind: Type.Literal('users-file', { description: 'Users of a YAML file with argon2id hashes.' }),
    name: sourceNameSchema('users-file'),
    file: text({
      default: 'users.yaml',
      description:
        'The file, seen from the config folder. `console-gateway hash-password` makes a hash.'
    }),
    decides: flag({
      default: true,
      description:
        'Whether this file alone decides on a user name that stands in it. `false`: the ' +
        'next source is asked as well, with the password, of a user who is disabled here or whose ' +
        'password does not match.'
    })
  },
  { additionalProperties: false, title: 'users-file' }
)

export const login = section(
  {
    fields: section(
      {
        username: text({ default: 'username', description: 'The user name.' }),
        password: text({ default: 'password', description: 'The password.' }),
        remember: text({
          default: 'autoLogin',
          description: 'A boolean: whether the cookie outlives the browser.'
        })
      },
      'The members of the console’s sign-in body.'
    ),
    refusedStatus: Type.Unsafe<200 | 401>(
      Type.Integer({
        enum: [200, 401],
        expected: '401 or 200',
        default: 401,
        description:
          'The HTTP status of a refused sign-in. 200 suits consoles that only look at `status: error` in the body.'
      })
    ),
    sources: Type.Array(Type.Union([usersFile, upstreamLogin]), {
      minItems: 1,
      default: [{ kind: 'users-file', file: 'users.yaml' }],
      description: 'What may vouch for an administrator, tried in this order.'
    })
  },
  'Sign-in.'
)
