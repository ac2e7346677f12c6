/** `endpoints.refresh` of `routes.yaml`: the call with which consoles renew their own token. */
import { answerSchema } from './answer.ts'
import { closed, maybe, path } from './primitives.ts'

export const refresh = maybe(
  closed(
    {
      path: path('The path of the refresh call (POST). Its body is not read.', {
        format: 'x-public-path',
        examples: ['/auth/refresh']
      }),
      answer: answerSchema(
        'The response, such as the inert token once more. Default: that of `endpoints.session`.'
      )
    },
    'The call with which consoles renew their own token, by the session cookie alone. It is no ' +
      'use of the session, since a timer makes it. Default: none.'
  )
)
