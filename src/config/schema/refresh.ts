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
        'The response to a refresh, such as the inert token once more. Default: who is signed in ' +
          'and the time left, as at `endpoints.session`.'
      )
    },
    'The refresh call of consoles that renew their own token, by the session cookie alone. A ' +
      'timer makes it, so it is no use of the session: other requests extend that. ' +
      'Without it there is none. Without a session it is refused with the code of an ended ' +
      'session, so that the console signs out.'
  )
)
