/** `endpoints.refresh` of `routes.yaml`: the call with which consoles renew their own token. */
import { Type } from 'typebox'
import { answerSchema } from './answer.ts'
import { closed, oneOf, path } from './primitives.ts'

/** When a refresh keeps its session from going idle. */
const policies = ['after-use', 'always', 'never'] as const

export const refresh = Type.Optional(
  closed(
    {
      path: path({
        description: 'The path of the refresh call (POST). Its body is not read.',
        examples: ['/auth/refresh']
      }),
      answer: answerSchema(
        'The response to a refresh, such as the inert token once more. Default: who is signed in ' +
          'and the time left, as at `endpoints.session`.'
      ),
      extendsIdle: oneOf([...policies], {
        default: 'after-use',
        description:
          'Whether a refresh extends `session.idle`. `after-use`: only if another request has ' +
          'extended it since the last refresh, since a timer of a forgotten tab makes refresh ' +
          'calls too; such a refresh gives up to a minute less than `idle`. Never beyond ' +
          '`session.absolute`.'
      })
    },
    {
      description:
        'The refresh call of consoles that renew their own token, by the session cookie alone. ' +
        'Without it there is none. Without a session it is refused with the code of an ended ' +
        'session, so that the console signs out.'
    }
  )
)
