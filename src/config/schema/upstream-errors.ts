/** `upstreams.X.errors`: where a back-end's error bodies have their message and field errors. */
import { Type } from 'typebox'
import { type ErrorFormat, errorFormats } from '../../json/error-body.ts'
import { closed, dotted, flag, list, maybe, optional } from './primitives.ts'

const formatNames = Object.keys(errorFormats)

const paths = (description: string) =>
  list(dotted('A path; lists have numbers.', { examples: ['errors.0.detail'] }), description)

const ownFormat = closed(
  {
    message: paths('The paths of the message; the first that leads to a text wins.'),
    fields: optional(
      {
        at: paths('The paths of the field errors: an object (name: texts), or a list of errors.'),
        name: maybe(paths('In each error of a list: the paths of the field’s name.')),
        text: maybe(paths('In each error of a list: the paths of its text.')),
        camelCase: maybe(flag('Names such as `Price` become `price`.'))
      },
      'Where the errors of single fields stand.'
    )
  },
  'Paths.'
)

export const upstreamErrors = maybe(
  Type.Unsafe<keyof typeof errorFormats | ErrorFormat>(
    Type.Union([Type.String({ enum: formatNames }), ownFormat], {
      expected:
        `one of ${formatNames.join(', ')}, or ` +
        '{ message: [PATH], fields: { at: [PATH], name: [PATH], text: [PATH] } }',
      description:
        'Where the JSON bodies of its errors (400 and above) have the message for people and ' +
        'the errors of single fields. The message then stands in the envelope, and the field ' +
        'errors beside it (`envelope.fieldErrors`), on all routes. Without it only routes with a ' +
        'shape map errors: a text in `errorMessage`, `message`, `msg` or `error`.',
      examples: ['drf', { message: ['error.text'], fields: { at: ['error.fields'] } }]
    })
  )
)
